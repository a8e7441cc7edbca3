//go:build linux

package partyline

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// The phonebook: everybody with the session itself, or those that any locator
// finds, with the locators that found nobody; and selectors that can be copied.
func TestList(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	a, b := startAs(t, w, "a"), startAs(t, w, "b")
	c := start(t, w, rig.Options{Session: "c", Cwd: w.Repo("other place"), Args: []string{"--session-id", "c-id", "--name", `c "quoted" \ 📞`}})
	publisher(t, w, `{"ticket": "E-7", "links": ["https://x.example/?a=<1>&b=2", "tab\there"]}`, "put", "c-id", "tracker")

	sorted := func(o outcome) string {
		ids := o.listed()
		slices.Sort(ids)
		return strings.Join(ids, " ")
	}
	for _, q := range []struct {
		name      string
		args      map[string]any
		found     string
		unmatched []string
		says      []string
	}{
		{"everybody", map[string]any{}, "a-id b-id c-id", nil, []string{"📒 Phonebook: 3 live sessions\n", "(this session)"}},
		{"blank ones", map[string]any{"to": " ", "selectors": []string{"", "\t"}}, "a-id b-id c-id", nil, []string{"3 live sessions\n"}},
		{"by to", map[string]any{"to": "b"}, "b-id", nil, []string{"1 live session of 3"}},
		{"by the number of a process", map[string]any{"to": b.PID}, "b-id", nil, nil},
		{"itself", map[string]any{"to": "a-id"}, "a-id", nil, []string{"(this session)"}},
		{"by both", map[string]any{"to": "b", "selectors": []string{"E-7", "nobody-1", "b", "nobody-2"}}, "b-id c-id", []string{"nobody-1", "nobody-2"}, []string{"2 live sessions of 3", `No live session matches "nobody-1".`, `No live session matches "nobody-2".`}},
		{"nobody", map[string]any{"selectors": []string{"nobody"}}, "", []string{"nobody"}, []string{"0 live sessions of 3", `No live session matches "nobody".`, `For everybody: touchtone {"action":"list"}`}},
		{"with a message", map[string]any{"to": "b", "message": "ignored"}, "b-id", nil, nil},
	} {
		q.args["action"] = "list"
		o := call(t, w, a, touchtone(q.args))
		if o.IsError || sorted(o) != q.found || !slices.Equal(o.Details.Unmatched, q.unmatched) {
			t.Errorf("%s: found %q, unmatched %q, want %q, %q:\n%s", q.name, sorted(o), o.Details.Unmatched, q.found, q.unmatched, o.Text)
		}
		contains(t, q.name, o.Text, q.says...)
		if n := strings.Count(o.Text, "(this session)"); n > 1 {
			t.Errorf("%s: %d entries are marked as this session", q.name, n)
		}
	}

	// Each selectors array is JSON, and any string of it dials its session.
	text := call(t, w, a, list("c-id")).Text
	var copied []string
	for line := range strings.Lines(text) {
		if array, ok := strings.CutPrefix(strings.TrimSpace(line), "selectors "); ok {
			if err := json.Unmarshal([]byte(array), &copied); err != nil {
				t.Fatalf("selectors: %v in %s", err, array)
			}
		}
	}
	if len(copied) != 7 { // id, name, cwd, pid, ticket, two links
		t.Errorf("selectors %q, want 7", copied)
	}
	var tools []model.Tool
	for _, l := range copied {
		tools = append(tools, broadcast("to "+l, l))
	}
	o := call(t, w, a, broadcast("to all.", copied...))
	if !slices.Equal(o.recipients(), []string{"c-id"}) {
		t.Errorf("the copied selectors together: %s", o.Text)
	}
	w.Model.Script("a", model.Step{Tools: tools})
	mark := a.Mark()
	a.Run("each")
	for i, o := range outcomes(t, a.Since(mark)) {
		if !slices.Equal(o.recipients(), []string{"c-id"}) {
			t.Errorf("the copied selector %q: %s", copied[i], o.Text)
		}
	}
	emptied(t, store(t, w), "c-id")
	once(t, c.SessionFile(), "to all.")
}

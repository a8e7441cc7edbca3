package exchange

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"switchboard/internal/delivery"
	"switchboard/internal/proc"
)

func TestSlug(t *testing.T) {
	for _, tt := range []struct {
		key  SessionKey
		want string // "" for any that is safe
	}{
		{SessionKey{"pi", "0198c5f0-7d5c-7000-8000-000000000000"}, "0198c5f0-7d5c-7000-8000-000000000000"},
		{SessionKey{"pi", "A.b_c-9"}, "A.b_c-9"},
		{SessionKey{"pi", strings.Repeat("x", 128)}, strings.Repeat("x", 128)},
		{SessionKey{"codex", "abc"}, "codex~abc"},
		{SessionKey{"pi", ""}, ""},
		{SessionKey{"pi", "."}, ""},
		{SessionKey{"pi", ".."}, ""},
		{SessionKey{"pi", "../x"}, ""},
		{SessionKey{"pi", ".tmp-x"}, ""},
		{SessionKey{"pi", "a."}, ""},
		{SessionKey{"pi", "a/b"}, ""},
		{SessionKey{"pi", "a\nb"}, ""},
		{SessionKey{"pi", "a~b"}, ""},
		{SessionKey{"pi", strings.Repeat("x", 129)}, ""},
		{SessionKey{"", "abc"}, ""},
		{SessionKey{"../pi", "abc"}, ""},
	} {
		got := tt.key.Slug()
		if tt.want != "" && got != tt.want || tt.want == "" && !safeName(got) {
			t.Errorf("Slug of %q = %q, want %q", tt.key, got, tt.want)
		}
	}
}

// safeName reports whether a name is one file, in any folder and shell.
func safeName(s string) bool {
	plain := strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-~", r)
	})
	return s != "" && s[0] != '.' && s[len(s)-1] != '.' && len(s) < 240 && !plain
}

// Every key has a name that is safe, and no two have the same.
func TestSlugProperty(t *testing.T) {
	part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c~.]{0,4}`), rapid.SampledFrom([]string{"pi", "codex", "", "../x"}))
	keys := rapid.Custom(func(t *rapid.T) SessionKey {
		k := SessionKey{part.Draw(t, "host"), part.Draw(t, "id")}
		if rapid.IntRange(0, 3).Draw(t, "clever") == 0 { // an id, or a host, that is another's name
			slug := k.Slug()
			k.ID = slug[strings.LastIndex(slug, "~")+1:]
			if host, _, ok := strings.Cut(slug, "~"); ok && rapid.Bool().Draw(t, "host too") {
				k.Host = host
			}
		}
		return k
	})
	seen := make(map[string]SessionKey)
	rapid.Check(t, func(t *rapid.T) {
		k := keys.Draw(t, "key")
		slug := k.Slug()
		if !safeName(slug) {
			t.Fatalf("Slug of %q = %q", k, slug)
		}
		if other, ok := seen[slug]; ok && other != k {
			t.Fatalf("Slug of %q and of %q = %q", k, other, slug)
		}
		seen[slug] = k
	})
}

func TestSlugClashes(t *testing.T) {
	seen := make(map[string]SessionKey)
	weird := SessionKey{"codex", "../../x"}
	bare := weird.Slug()[strings.LastIndex(weird.Slug(), "~")+1:]
	nobody := SessionKey{"", "abc"}
	host := strings.Trim(strings.TrimSuffix(nobody.Slug(), "abc"), "~")
	for _, k := range []SessionKey{
		weird,
		{"codex", bare},
		{"pi", bare},
		{"pi", "../../x"},
		{"pi", "codex~~" + bare},
		nobody,
		{host, "abc"},
		{"codex", "abc"},
		{"pi", "codex~abc"},
		{"pi", "abc"},
	} {
		if other, ok := seen[k.Slug()]; ok {
			t.Errorf("Slug of %q and of %q = %q", k, other, k.Slug())
		}
		seen[k.Slug()] = k
	}
}

func TestTeamID(t *testing.T) {
	for id, want := range map[TeamID]bool{
		"a": true, "Az_9-": true, TeamID(strings.Repeat("x", 64)): true,
		"": false, "a.b": false, "a/b": false, "..": false, "a\n": false, "é": false, TeamID(strings.Repeat("x", 65)): false,
	} {
		if got := id.Valid(); got != want {
			t.Errorf("TeamID(%q).Valid() = %v, want %v", id, got, want)
		}
	}
}

// Ids sort in the order of their making, from many goroutines and when the
// clock is set back, and while others draw ids from the same library.
func TestNewID(t *testing.T) {
	start := time.Now()
	var mu sync.Mutex
	var made []string
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				mu.Lock()
				made = append(made, NewID(start.Add(time.Duration(500-i)*time.Millisecond)))
				mu.Unlock()
				NewID(start)
				ulid.Make()
			}
		})
	}
	wg.Wait()
	if !slices.IsSorted(made) {
		t.Error("ids are not in the order of their making")
	}
	if n := len(slices.Compact(slices.Clone(made))); n != len(made) {
		t.Errorf("%d of %d ids are different", n, len(made))
	}
	later := start.Add(time.Hour)
	id, err := ulid.ParseStrict(NewID(later))
	if err != nil || id.Time() != ulid.Timestamp(later) {
		t.Errorf("NewID(%s) = %s, %v", later, id, err)
	}
}

func TestOwnedError(t *testing.T) {
	for want, err := range map[string]error{
		"the session is open in another process": &OwnedError{},
		"the session is open in process 42":      &OwnedError{By: Record{Agent: proc.ID{PID: 42}}},
	} {
		if err.Error() != want {
			t.Errorf("OwnedError says %q, want %q", err, want)
		}
	}
}

func TestEncodeEnvelope(t *testing.T) {
	m := delivery.Message{ID: "i", Kind: delivery.Call, Text: "<a>&\u2028\xff", After: []string{"x"}}
	data, err := EncodeEnvelope(m)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(data), "\n") != 1 || !strings.HasSuffix(string(data), "\n") || !strings.Contains(string(data), `<a>&`) {
		t.Errorf("EncodeEnvelope = %q, want one line without HTML escapes", data)
	}
	var e Envelope
	if err := json.Unmarshal(data, &e); err != nil || e.Version != Version || e.Text != "<a>&\u2028\uFFFD" || e.ID != "i" {
		t.Errorf("read back %+v, %v", e, err)
	}
	if _, err := EncodeEnvelope(delivery.Message{Kind: delivery.Call, Text: strings.Repeat("\xff", delivery.MaxText/3+1)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("EncodeEnvelope of a text that grows: %v, want ErrTooLarge", err)
	}
	if _, err := EncodeEnvelope(delivery.Message{}); err == nil {
		t.Error("EncodeEnvelope without a kind: no error")
	}
}

// What Check lets pass, every reader takes whole; what it refuses, none does.
func TestCheckProperty(t *testing.T) {
	word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", " ", "a", "PID", "tmuxPane", "\xff", strings.Repeat("k", maxKey), strings.Repeat("k", maxKey+1), strings.Repeat("v", maxValue), strings.Repeat("v", maxValue+1),
	}))
	rapid.Check(t, func(t *rapid.T) {
		v := Values(rapid.MapOfN(word, rapid.SliceOfNDistinct(word, 1, 3, rapid.ID), 0, 4).Draw(t, "values"))
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseContribution(data)
		whole := err == nil && maps.EqualFunc(v, got, slices.Equal[[]string])
		if err := v.Check(); (err == nil) != whole {
			t.Fatalf("Check of %.300q = %v, and it is read as %.300q", v, err, got)
		}
	})
	many := make([]string, maxValues+1)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	if err := (Values{"a": many}).Check(); err == nil {
		t.Error("Check of too many values: no error")
	}
	if err := (Values{"a": many[1:]}).Check(); err != nil {
		t.Error(err)
	}
}

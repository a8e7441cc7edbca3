//go:build linux

package team

import (
	"strings"
	"testing"

	"switchboard/e2e/rig"
)

// The scene of the spec: alpha changes a file that bravo has read; bravo's
// stale write is refused; it reads again and passes.
func TestScene(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Write("login.ts", "export function login(user) {\n  return user;\n}\n")
	alpha := start(t, w, rig.Options{Session: "alpha"})
	bravo := start(t, w, rig.Options{Session: "bravo"})
	if callsign(alpha) != "alpha" || callsign(bravo) != "bravo" {
		t.Fatalf("callsigns %s and %s", callsign(alpha), callsign(bravo))
	}
	rig.Eventually(t, rig.Watchdog, "alpha to see its peer", func() bool { return strings.Contains(footer(alpha), "1 peer") })

	w.Model.Script("bravo", read("login.ts"), ok)
	bravo.Run("read the login code")
	w.Model.Script("alpha", read("login.ts"), edit("login.ts", "export function", "export async function"), ok)
	alpha.Run("make login async")

	stale := write("login.ts", "export function login(user) {\n  return user.name;\n}\n")
	w.Model.Script("bravo", stale, read("login.ts"), edit("login.ts", "return user;", "return user.name;"), ok)
	bravo.Run("return the name")
	turns := w.Model.Turns("bravo")
	first := turns[0].Transcript()
	for _, want := range []string{"you are bravo. 1 other agent works in this repository", "• alpha [idle] on main"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first brief lacks %q:\n%s", want, first)
		}
	}
	prompted := turns[2].Transcript()
	for _, want := range []string{"alpha changed a file you work with", "• login.ts: 1 edit from line 1; you read it", "-export function login(user) {", "+export async function login(user) {", "alpha now works on: make login async"} {
		if !strings.Contains(prompted, want) {
			t.Errorf("what bravo was told with its prompt lacks %q:\n%s", want, prompted)
		}
	}
	refusal := turns[3].Last().Text
	t.Logf("refused: %s", refusal)
	if !strings.Contains(refusal, "alpha changed login.ts") || !strings.Contains(refusal, "Call read on login.ts") {
		t.Errorf("the stale write was answered %q", refusal)
	}
	if got, want := fileText(t, inWorld(w, "login.ts")), "export async function login(user) {\n  return user.name;\n}\n"; got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
	if got := turns[5].Last().Text; strings.Contains(got, "⚠") {
		t.Errorf("the fresh edit was noted: %q", got)
	}
}

package brief_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"switchboard/internal/brief"
)

// spec: telecom, Change notices, Worktrees
func TestNotices(t *testing.T) {
	session := brief.Notice{
		Callsign: "alpha", Path: "src/auth/session.ts", Edits: 1, First: 1, Why: brief.YouRead,
		Lines: []string{"-export function login(user) {", "+export async function login(user) {"},
	}
	lane := brief.Notice{Callsign: "charlie", Path: "src/db.ts", Checkout: "/home/me/lane", Edits: 3, First: 10, Why: brief.YouChanged}
	const (
		old  = "\nWhat you know is out of date: call read on a file before you edit it."
		meet = "\nA copy in another checkout leaves yours as it is; the two meet when the branches merge. To see theirs, call read on that path."
	)
	for _, c := range []struct {
		name    string
		notices []brief.Notice
		want    string
	}{
		{"none", nil, ""},
		{
			"one",
			[]brief.Notice{session},
			`📡 alpha changed a file you work with:
• src/auth/session.ts: 1 edit from line 1; you read it
    -export function login(user) {
    +export async function login(user) {` + old,
		},
		{
			"two peers, in turn",
			[]brief.Notice{
				session,
				{Callsign: "delta", Path: "a.go", Why: brief.YouRead, Created: true, First: 1},
				{Callsign: "alpha", Path: "b.go", Why: brief.YouChanged},
			},
			`📡 alpha changed 2 files you work with:
• src/auth/session.ts: 1 edit from line 1; you read it
    -export function login(user) {
    +export async function login(user) {
• b.go: changed; you changed it
📡 delta changed a file you work with:
• a.go: created; you read it` + old,
		},
		{
			"another checkout",
			[]brief.Notice{lane},
			`📡 charlie changed a file you work with:
• /home/me/lane/src/db.ts: 3 edits from line 10; you changed your copy` + meet,
		},
		{
			"both",
			[]brief.Notice{lane, {Callsign: "charlie", Path: "a.go", Edits: 1, First: 2, Why: brief.YouRead}},
			`📡 charlie changed 2 files you work with:
• /home/me/lane/src/db.ts: 3 edits from line 10; you changed your copy
• a.go: 1 edit from line 2; you read it` + old + meet,
		},
		{
			"deleted",
			[]brief.Notice{{Callsign: "alpha", Path: "a.go", Edits: 1, First: 1, Deleted: true, Why: brief.YouRead}},
			`📡 alpha changed a file you work with:
• a.go: deleted; you read it`,
		},
	} {
		got := brief.Notices(c.notices)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		logSize(t, "notices, "+c.name, got)
	}
}

// Every file is named, however many there are; changed lines are shown of few.
func TestManyNotices(t *testing.T) {
	var ns []brief.Notice
	for i := range 40 {
		ns = append(ns, brief.Notice{Callsign: "alpha", Path: fmt.Sprintf("f%d.go", i), Lines: strings.Fields(strings.Repeat("+x ", 20))})
	}
	got := brief.Notices(ns)
	if n := strings.Count(got, "\n• f"); n != 40 {
		t.Errorf("%d files are named", n)
	}
	if n := strings.Count(got, "    +x"); n != 30 {
		t.Errorf("%d changed lines are shown", n)
	}
	logSize(t, "notices, 40 files", got)
}

package dirstore

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
)

var damaged = []string{
	"", "{", "null", "[]", `"x"`, "\xff\xfe", "{}", `{"v":1}`, strings.Repeat("[", 20000), strings.Repeat(`{"a":`, 20000), "\x00\x00\x00",
	`{"v":99999999999999999999}`, `{"v":-1}`, `{"v":1e3}`,
}

const fuzzID = "01M8QAEAH1JYNV0R2YKPJRS3D5"

func fuzzStore(f *testing.F) *Store {
	s, err := Open(f.TempDir(), "test")
	if err != nil {
		f.Fatal(err)
	}
	if err := os.Mkdir(s.inboxPath("a"), 0o700); err != nil {
		f.Fatal(err)
	}
	return s
}

// Whatever lies in an inbox, it is either a message within all limits that can
// be sent on, or it is left where it is.
func FuzzEnvelope(f *testing.F) {
	for _, text := range damaged {
		f.Add([]byte(text))
	}
	m := delivery.Message{ID: fuzzID, Kind: delivery.Call, Text: "text", After: []string{"x"}, Sent: now()}
	whole, err := exchange.EncodeEnvelope(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(bytes.Replace(whole, []byte(`"v":1`), []byte(`"v":2`), 1))
	f.Add(bytes.Replace(whole, []byte(fuzzID), []byte("01M8QAEAH1JYNV0R2YKPJRS3D6"), 1))
	f.Add(bytes.Replace(whole, []byte("text"), []byte("t\xff\xfet"), 1))
	f.Add(bytes.Replace(whole, []byte("text"), bytes.Repeat([]byte("t"), delivery.MaxText+1), 1))
	s := fuzzStore(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := s.envelopePath("a", fuzzID)
		writeFile(t, path, string(data))
		m, err := s.readEnvelope("a", fuzzID)
		if err == nil && (m.ID != fuzzID || m.Kind == "" || len(m.Text) > delivery.MaxText || len(data) > delivery.MaxMessage) {
			t.Errorf("%.200q gives %+v", data, m)
		}
		got, werr := s.Waiting(key("a"))
		if werr != nil || (len(got) == 1) != (err == nil) {
			t.Errorf("%.200q: Waiting = %d messages, %v; reading it alone: %v", data, len(got), werr, err)
		}
		problems, perr := s.Problems()
		if perr != nil || len(problems) == 0 && err != nil {
			t.Errorf("%.200q: Problems = %v, %v; reading it: %v", data, problems, perr, err)
		}
		if readFile(t, path) != string(data) {
			t.Errorf("%.200q was changed", data)
		}
	})
}

// Whatever a journal holds, its reader gets numbers that grow, and an append
// goes on from them without touching what is whole.
func FuzzJournal(f *testing.F) {
	for _, text := range damaged {
		f.Add([]byte(text))
		f.Add([]byte(`{"v":1,"epoch":"e","base":3}` + "\n" + text + "\n" + `{"v":1,"seq":5,"kind":"k"}` + "\n" + text))
	}
	f.Add([]byte(`{"v":1,"epoch":"e","base":0}` + "\n" + `{"v":1,"seq":1,"last":2,"kind":"k"}` + "\n" + `{"v":1,"seq":2,"kind":"k"}` + "\n" + `{"v":1,"seq":3,"last":4,"kind":"k"}` + "\n"))
	f.Add([]byte(`{"v":1,"seq":4611686018427387904,"kind":"k"}` + "\n"))
	f.Add([]byte(`{"base":18446744073709551615}` + "\n"))
	root := f.TempDir()
	if _, err := Open(root, "test"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := open(t, root) // knows no tail
		writeFile(t, s.journalPath(team), string(data))
		before, c, err := s.Read(team, exchange.Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		var last uint64
		for _, e := range before {
			if e.Seq <= last {
				t.Fatalf("%.200q: entry %d after %d", data, e.Seq, last)
			}
			last = e.Seq
		}
		out, err := s.Append(team, note("x"), note("y"))
		if err != nil && last >= maxSeq-1 {
			return // a forged number, and none left after it
		}
		if err != nil {
			t.Fatalf("%.200q: Append: %v", data, err)
		}
		if out[0].Seq <= last || out[1].Seq != out[0].Seq+1 {
			t.Errorf("%.200q: Append gave %d and %d, after %d", data, out[0].Seq, out[1].Seq, last)
		}
		got, _, err := s.Read(team, c)
		if err != nil || short(got) != short(out) {
			t.Errorf("%.200q: Read on = %s, %v; want %s", data, short(got), err, short(out))
		}
		if all, _, _ := s.Read(team, exchange.Cursor{}); short(all) != strings.TrimSpace(short(before)+" "+short(out)) {
			t.Errorf("%.200q: %s became %s", data, short(before), short(all))
		}
		if err := s.Rewrite(team, func(es []exchange.Entry) []exchange.Entry { return es }); err != nil {
			t.Errorf("%.200q: Rewrite: %v", data, err)
		}
		if all, _, _ := s.Read(team, exchange.Cursor{}); short(all) != strings.TrimSpace(short(before)+" "+short(out)) {
			t.Errorf("%.200q: a rewrite made %s of %s", data, short(all), short(before))
		}
	})
}

// Whatever lies among the records, it is either one of the session that its
// name says, or it is left where it is.
func FuzzRecord(f *testing.F) {
	for _, text := range damaged {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"v":1,"session":{"host":"pi","id":"a"},"generation":"g","cwd":"/","state":"idle","agent":{"host":"elsewhere","pid":1}}`))
	f.Add([]byte(`{"v":1,"session":{"host":"pi","id":"b"},"generation":"g"}`))
	f.Add([]byte(`{"v":2,"session":{"host":"pi","id":"a"},"generation":"g"}`))
	f.Add([]byte(`{"v":1,"session":{"host":"pi","id":"a"},"generation":"g","bell":"/etc/passwd","agent":{"pid":-1}}`))
	s := fuzzStore(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := s.recordPath("a")
		writeFile(t, path, string(data))
		r, err := s.readRecord("a")
		if err == nil && (r.Key.Slug() != "a" || r.Generation == "" || r.Version != exchange.Version) {
			t.Errorf("%.200q gives %+v", data, r)
		}
		if _, err := s.Sessions(); err != nil {
			t.Errorf("%.200q: Sessions: %v", data, err)
		}
		s.Ring(key("a"))
		if err != nil {
			if readFile(t, path) != string(data) {
				t.Errorf("%.200q was changed", data)
			}
			if problems, perr := s.Problems(); len(problems) == 0 || perr != nil {
				t.Errorf("%.200q: Problems = %v, %v; reading it: %v", data, problems, perr, err)
			}
		}
	})
}

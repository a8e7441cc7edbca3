package pihost

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func line(ids string) string {
	return `{"type":"custom_message","customType":"switchboard","content":"x","details":{"v":1,"ids":[` + ids + `]}}` + "\n"
}

func TestTranscript(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	tr := &transcript{path: path}
	write := func(flag int, text string) {
		t.Helper()
		f, err := os.OpenFile(path, flag|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"no file yet", func() {}, nil},
		{"first lines", func() { write(os.O_APPEND, "{\"type\":\"session\"}\n"+line(`"a","b"`)) }, []string{"a", "b"}},
		{"nothing new", func() {}, nil},
		{"half a line", func() { write(os.O_APPEND, line(`"c"`)[:30]) }, nil},
		{"its rest", func() { write(os.O_APPEND, line(`"c"`)[30:]) }, []string{"c"}},
		{"others' and damaged lines", func() {
			write(os.O_APPEND, `{"type":"custom_message","customType":"other","details":{"ids":["x"]}}`+"\n"+
				`{"type":"message","message":{"role":"user","content":"\"switchboard\" {\"ids\":[\"x\"]}"}}`+"\n"+
				`{"type":"custom_message","customType":"switchboard","details":"ids"}`+"\n"+
				`{"customType":"switchboard" broken`+"\n"+line(`"d"`))
		}, []string{"d"}},
		{"replaced by another file", func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			write(os.O_TRUNC, line(`"a"`))
		}, []string{"a"}},
		{"cut short", func() { write(os.O_TRUNC, line(``)) }, nil},
	} {
		step.do()
		got, err := tr.read()
		if err != nil || !slices.Equal(got, step.want) {
			t.Errorf("%s: read = %q, %v, want %q", step.name, got, err, step.want)
		}
	}
}

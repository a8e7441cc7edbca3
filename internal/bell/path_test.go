package bell

import "testing"

func TestPathRefusesNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "../a", `a\b`, "a\x00"} {
		for which, f := range map[string]func(dir, name string) (string, error){"Path": Path, "Place": Place} {
			if path, err := f(t.TempDir(), name); err == nil {
				t.Errorf("%s(dir, %q) = %q, want an error", which, name, path)
			}
		}
	}
}

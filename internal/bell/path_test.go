package bell

import "testing"

func TestPathRefusesNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "../a", `a\b`, "a\x00"} {
		if path, err := Path(t.TempDir(), name); err == nil {
			t.Errorf("Path(dir, %q) = %q, want an error", name, path)
		}
	}
}

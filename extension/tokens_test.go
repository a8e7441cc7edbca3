package extension_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"switchboard/extension"
)

// budget is what each tool may cost in every request, with its guidelines.
var budget = map[string]int{"touchtone": 300, "telecom": 600}

// What a tool adds to each request is counted by a real tokenizer.
func TestPromptCost(t *testing.T) {
	data, err := fs.ReadFile(extension.Files(), "tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var tools map[string]struct {
		Description      string          `json:"description"`
		PromptSnippet    string          `json:"promptSnippet"`
		PromptGuidelines []string        `json:"promptGuidelines"`
		Parameters       json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal(data, &tools); err != nil {
		t.Fatal(err)
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	count := func(s string) int {
		n, err := codec.Count(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, tool := range tools {
		declared, err := json.Marshal(map[string]any{"type": "function", "function": map[string]any{
			"name": name, "description": tool.Description, "parameters": tool.Parameters,
		}})
		if err != nil {
			t.Fatal(err)
		}
		total := count(string(declared)) + count("- "+name+": "+tool.PromptSnippet+"\n")
		for _, line := range tool.PromptGuidelines {
			total += count("- " + line + "\n")
		}
		t.Logf("%s costs %d tokens in each request", name, total)
		limit, ok := budget[name]
		if !ok || total > limit {
			t.Errorf("%s costs %d tokens, budget %d", name, total, limit)
		}
	}
}

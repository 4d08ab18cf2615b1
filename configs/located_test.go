package configs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zenmcp/configs"
)

// lines renders problems one a line, the file's name as F.
func lines(file string, problems []*configs.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(strings.ReplaceAll(p.Error(), file, "F") + "\n")
	}
	return b.String()
}

func TestSyntaxErrorsAreLocated(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"empty", "", `F:1:1: the file is empty; {} is an empty configuration`},
		{"blank", " \n\t\n", `F:1:1: the file is empty; {} is an empty configuration`},
		{"only a BOM", "\ufeff", `F:1:1: the file is empty; {} is an empty configuration`},
		{"only a comment", "// nothing", `F:1:11: the file ends here, but a value is missing`},
		{"cut off", `{broken`, `F:1:2: this is no JSON value; text and names stand in double quotes`},
		{"missing comma", "{\n  \"a\": 1\n  \"b\": 2\n}", `F:3:3: invalid character '"' after object value (expecting ',' or '}')`},
		{"missing comma in a list", `["a" "b"]`, `F:1:6: invalid character '"' after array value (expecting ',' or ']')`},
		{"missing colon", `{"a" 1}`, `F:1:6: invalid character '1' after object name`},
		{"number as a name", `{1: 2}`, `F:1:2: invalid character '1' at start of object name`},
		{"missing value", `{"a": }`, `F:1:7: invalid character '}' at start of value`},
		{"wrong bracket", `{"a": [1}`, `F:1:9: invalid character '}' after array value (expecting ',' or ']')`},
		{"two commas", `[1,,2]`, `F:1:4: invalid character ',' at start of value`},
		{"single quotes", "{\n\t'a': 1}", `F:2:2: unexpected '; text and names stand in double quotes`},
		{"name without quotes", `{a: 1}`, `F:1:2: this is no JSON value; text and names stand in double quotes`},
		{"Python's true", `{"a": True}`, `F:1:7: this is no JSON value; text and names stand in double quotes`},
		{"hexadecimal", `{"a": 0x10}`, `F:1:7: this is not a number as JSON writes it`},
		{"leading point", `{"a": .5}`, `F:1:7: this is not a number as JSON writes it`},
		{"object not closed", "{\n  \"a\": {\n    \"b\": 1\n", `F:4:1: the file ends here, but the { in line 2 is not closed`},
		{"list not closed", "\n[1,", `F:2:4: the file ends here, but the [ in line 2 is not closed`},
		{"value missing at the end", `{"a":`, `F:1:6: the file ends here, but the { in line 1 is not closed`},
		{"comment not closed", "{} /* and so on", `F:1:4: this comment is not closed`},
		{"text not closed", "{\n \"a\": \"x}", `F:2:7: this text has no closing quote`},
		{"text over two lines", "{\n \"a\": \"x\n\", \"b\": 1}", `F:2:7: this text has no closing quote on its line; a line end within text is written \n`},
		{"quote forgotten", "{\"a\": \"x,\r\n\"b\": 1}", `F:1:7: this text has no closing quote on its line; a line end within text is written \n`},
		{"Windows path", `{"dir": "C:\Users\me"}`, `F:1:12: a single backslash means nothing here; one that belongs to the text, as in a path, is written \\`},
		{"Windows path with u", `{"dir": "C:\users"}`, `F:1:12: \u needs four hexadecimal digits; a backslash that belongs to the text, as in a path, is written \\`},
		{"tab in text", "{\"a\": \"x\ty\"}", `F:1:9: the control character 0x09 within text is written \u0009`},
		{"something behind", "{}\n{}", `F:2:1: invalid character '{' after top-level value`},
		{"columns are code points", `{"ä€😀": 'x'}`, `F:1:9: unexpected '; text and names stand in double quotes`},
		{"columns after a BOM", "\ufeff{'a': 1}", `F:1:2: unexpected '; text and names stand in double quotes`},
		{"lines that end in CRLF", "{\r\n  \"a\": 1,\r\n  'b': 2\r\n}\r\n", `F:3:3: unexpected '; text and names stand in double quotes`},
		{"Latin-1", "{\n \"a\": \"\xe9\"}", `F:2:8: this is not UTF-8 text; save the file as UTF-8`},
		{"UTF-16", "\xff\xfe{\x00}\x00", `F:1:1: is UTF-16 text; save it as UTF-8`},
		{"NUL", "{\x00}", `F:1:2: invalid character '\u0000' at start of value`},
		{"depth", strings.Repeat("[", 101), `F:1:101: more than 100 lists and objects lie in each other here`},
		{"depth in a comment counts not", "{} //" + strings.Repeat("[", 101) + "\n x", `F:2:2: invalid character 'x' after top-level value`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			doc, err := configs.Parse("F", []byte(test.text))
			if err == nil {
				t.Fatalf("accepted as %s", doc.JSON())
			}
			if err.Error() != test.want {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
}

func TestWhatPeopleWriteIsRead(t *testing.T) {
	t.Parallel()
	const want = `{"a":[1,"// no comment, \" either"],"b":{}}`
	for name, text := range map[string]string{
		"plain":           `{"a":[1,"// no comment, \" either"],"b":{}}`,
		"comments":        "// one\n{/* two */\"a\":[1,/**/\"// no comment, \\\" either\"],\"b\":{}} // three",
		"trailing commas": "{\"a\":[1,\"// no comment, \\\" either\",],\"b\":{},}\n",
		"BOM and CRLF":    "\ufeff{\r\n\"a\":[1,\r\n\"// no comment, \\\" either\"], // x\r\n\"b\":{}\r\n}\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := configs.Parse("F", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := compact(t, doc.JSON()); got != want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, errs, warnings string }{
		{name: "whole", text: `{
			"$schema": "x", "defaultMigrationModel": "m", // not for us
			"endpoints": [{"id": "e", "baseUrl": "http://127.0.0.1:1/v1", "apiKey": "${KEY}"}],
			"models": [{"id": "m", "endpointId": "e", "defaultParams": {"n": 12345678901234567890}, "vision": true}],
			"imageModels": [{"id": "i", "endpointId": "e", "modelName": "x", "defaultQuality": null}],
			"defaultModel": "m", "defaultImageModel": "i", "defaultAgent": "default", "maxToolOutput": 100,
		}`},
		{name: "broken (B07)", text: `{broken`, errs: "F:1:2: this is no JSON value; text and names stand in double quotes\n"},
		{name: "not an object", text: `[]`, errs: "F:1:1: the file must hold one object, { … }\n"},
		{name: "null", text: ` null`, errs: "F:1:2: the file must hold one object, { … }\n"},
		{
			name: "types", text: "{\n\t\"endpoints\": {},\n\t\"models\": [{\"id\": 1}, \"x\"],\n\t\"maxToolOutput\": 1.5,\n\t\"inlineImages\": \"yes\"\n}",
			errs: "F:2:15: endpoints: must be a list, not an object\n" +
				"F:3:20: models.0.id: must be text, not 1\n" +
				"F:3:24: models.1: must be an object, not text\n" +
				"F:4:19: maxToolOutput: must be a whole number, not 1.5\n" +
				"F:5:18: inlineImages: must be true or false, not text\n",
		},
		{
			name: "a key is not repeated", text: `{"inlineImages": "sk-secret", "maxToolOutput": 123456789012345678901234567890123}`,
			errs: "F:1:18: inlineImages: must be true or false, not text\n" +
				"F:1:48: maxToolOutput: must be a whole number, not such a long number\n",
		},
		{
			name: "entries without an id", text: "{\"models\": [\n{\"endpointId\": \"e\"},\n{\"id\": \"\", \"endpointId\": \"e\"}],\n\"endpoints\": [{\"id\": \"e\"}, null]}",
			errs: "F:4:28: endpoints.1.id: is missing or empty; others refer to the entry by it\n" +
				"F:2:1: models.0.id: is missing or empty; others refer to the entry by it\n" +
				"F:3:8: models.1.id: is missing or empty; others refer to the entry by it\n",
		},
		{
			name: "limits", text: `{"maxToolOutput": 0, "maxDownloadBytes": -1, "endpoints": [{"id": "e"}], "models": [{"id": "m", "endpointId": "e", "maxContextTokens": -5}]}`,
			errs: "F:1:136: models.0.maxContextTokens: must be at least 0\n" +
				"F:1:19: maxToolOutput: must be at least 1\n" +
				"F:1:42: maxDownloadBytes: must be at least 0\n",
		},
		{
			name: "what refers to nothing", text: `{"endpoints": [{"id": "openai"}, {"id": "openai"}, {"id": "x", "baseUrl": "api.x.com"}],
"models": [{"id": "gpt5", "endpointId": "openia"}, {"id": "o"}],
"imageModels": [{"id": "i", "endpointId": "none"}],
"defaultModel": "gtp5", "defaultImageModel": "j9999", "defaultAgent": "a"}`,
			warnings: `F:1:41: endpoints.1.id: "openai" is the id of an entry before it, which is the one that counts
F:1:75: endpoints.2.baseUrl: is not an http or https URL
F:2:41: models.0.endpointId: there is no endpoint with the id "openia"; did you mean "openai"?
F:2:52: models.1.endpointId: is missing or empty; it is the id of an endpoint
F:3:43: imageModels.0.endpointId: there is no endpoint with the id "none"
F:4:17: defaultModel: there is no model with the id "gtp5"; did you mean "gpt5"?
F:4:46: defaultImageModel: there is no image model with the id "j9999"
`,
		},
		{name: "an agent is no path", text: `{"defaultAgent": "../x"}`, errs: "F:1:18: defaultAgent: id \"../x\" is not the plain name of a file\n"},
		{
			name: "keys", text: "{\n\"maxToolOuput\": 5,\n\"note\": 1, \"x\": 2,\n\"inlineimages\": true,\n\"endpoints\": [{\"id\": \"a\",\n\"id\": \"b\", \"apikey\": \"\", \"baseURL\": \"\"}]}",
			warnings: "F:2:1: maxToolOuput: is no known key; did you mean \"maxToolOutput\"?\n" +
				"F:4:1: inlineimages: is no known key; did you mean \"inlineImages\"?\n" +
				"F:6:12: endpoints.0.apikey: is no known key; did you mean \"apiKey\"?\n" +
				"F:6:26: endpoints.0.baseURL: is no known key; did you mean \"baseUrl\"?\n" +
				"F:6:1: endpoints.0.id: is there twice; the last one counts\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := find(t, configs.Options{})
			file := write(t, filepath.Join(p.Home, "config.json"), test.text)
			config, warnings, err := p.Config()
			if got := lines(file, configs.Problems(err)); got != test.errs {
				t.Errorf("errors\n%s want\n%s", got, test.errs)
			}
			if got := lines(file, warnings); got != test.warnings {
				t.Errorf("warnings\n%s want\n%s", got, test.warnings)
			}
			if err != nil && (len(config.Endpoints) > 0 || config.InlineImages) {
				t.Errorf("an error comes with half a configuration: %+v", config)
			}
			if after, _ := os.ReadFile(file); string(after) != test.text {
				t.Error("reading changed the file")
			}
		})
	}
}

func TestReadableKeysAreToldOf(t *testing.T) {
	t.Parallel()
	p := find(t, configs.Options{})
	file := write(t, filepath.Join(p.Home, "config.json"), `{"endpoints": [{"id": "a", "apiKey": "sk-1"}, {"id": "b", "apiKey": "${KEY}"}, {"id": "c"}]}`)
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	if info.Mode().Perm() == 0o644 && filepath.Separator == '/' {
		want = "F:1:38: endpoints.0.apiKey: others on this machine may read the key; chmod 600 \"F\"\n"
	}
	config, warnings, err := p.Config()
	if got := lines(file, warnings); err != nil || got != want {
		t.Errorf("got %s%v, want %s", got, err, want)
	}
	if config.Endpoints[1].APIKey != "${KEY}" {
		t.Errorf("the key of b became %q", config.Endpoints[1].APIKey)
	}
}

func TestPermissionsAreChecked(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, errs, warnings string }{
		{name: "both lists", text: "{\n \"permissions\": {\n  \"tools\": {\"allow\": [\"*\"], \"deny\": [\"rm\"]}}}",
			errs: "F:3:12: permissions.tools: \"allow\" and \"deny\" exclude each other; keep one of them\n"},
		{name: "neither", text: `{"permissions": {"skills": {}}}`, errs: "F:1:28: permissions.skills: a policy needs \"allow\" or \"deny\", each a list of names\n"},
		{name: "a list in a list", text: `{"permissions": {"tools": {"deny": [["rm"]]}}}`,
			errs: "F:1:36: permissions.tools.deny: must be a list of names, but holds [rm]\n"},
		{name: "null list", text: `{"permissions": {"tools": {"deny": null}}}`, errs: "F:1:36: permissions.tools.deny: must be a list of names\n"},
		{name: "no object", text: `{"permissions": ["*"]}`, errs: "F:1:17: permissions: must be an object with tools, skills, mcps and subagents\n"},
		{name: "other letters", text: `{"permissions": {"tool": {"allow": []}, "subAgents": {"allow": []}, "mcps": {"deny": [], "alow": []}}}`,
			warnings: "F:1:18: permissions.tool: is no known key; did you mean \"tools\"?\n" +
				"F:1:41: permissions.subAgents: is no known key; did you mean \"subagents\"?\n" +
				"F:1:90: permissions.mcps.alow: is no known key; did you mean \"allow\"?\n"},
		{name: "twice", text: "{\"permissions\": {},\n\"permissions\": {\"tools\": {\"allow\": []}, \"tools\": {\"allow\": [\"*\"]}}}",
			errs:     "F:2:50: permissions.tools: is there twice; keep one of them\nF:2:16: permissions: is there twice; keep one of them\n",
			warnings: "F:2:1: permissions: is there twice; the last one counts\nF:2:41: permissions.tools: is there twice; the last one counts\n"},
		{name: "twice in other letters", text: `{"Permissions": {}, "permissions": {}}`,
			errs:     "F:1:17: Permissions: is there twice; keep one of them\nF:1:36: permissions: is there twice; keep one of them\n",
			warnings: "F:1:2: Permissions: is no known key; did you mean \"permissions\"?\n"},
		{name: "misspelt", text: `{"permisions": {"tools": {"allow": ["*"]}}}`, warnings: "F:1:2: permisions: is no known key; did you mean \"permissions\"?\n"},
		{name: "other fields", text: `{"id": "other", "modelId": "", "maxRounds": -1, "function": {"name": 1}, "messages": [{"role": "system", "content": [{}]}]}`,
			errs: "F:1:70: function.name: must be text, not 1\n"},
		{name: "values", text: `{"id": "other", "modelId": "", "maxRounds": -1, "custom": true}`,
			errs:     "F:1:45: maxRounds: must be at least 0\nF:1:28: modelId: is empty; without it the default model is used\n",
			warnings: "F:1:8: id: is not used: the name of the file, \"a\", is the agent's id\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := find(t, configs.Options{})
			file := write(t, filepath.Join(p.Home, "agents", "a.json"), test.text)
			agent, err := p.Agent("a")
			if got := lines(file, configs.Problems(err)); got != test.errs {
				t.Errorf("errors\n%s want\n%s", got, test.errs)
			}
			if got := lines(file, agent.Warnings); got != test.warnings {
				t.Errorf("warnings\n%s want\n%s", got, test.warnings)
			}
			if err != nil && agent.Permissions != nil {
				t.Errorf("an error comes with permissions: %+v", agent.Permissions)
			}
		})
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	tests := []struct{ name, text, want string }{
		{"caret", "{\n  \"a\": 'x'\n}", "    2 |   \"a\": 'x'\n      |        ^\n"},
		{"tabs and CRLF", "{\r\n\t\"ä\": 'x'\r\n}", "    2 |  \"ä\": 'x'\n      |       ^\n"},
		{"end of the file", "{\n", "    2 | \n      | ^\n"},
		{"secrets", `{"apiKey": "sk-1\"2", "Authorization": "Bearer x", "b": 'y'}`,
			"    1 | ey\": \"*******\", \"Authorization\": \"********\", \"b\": 'y'}\n      |                                                   ^\n"},
		{"secret without an end", `{"a": 'x', "token": "abc`, "    1 | {\"a\": 'x', \"token\": \"***\n      |       ^\n"},
		{"secret arguments", `["--api-key", "abc", "-t=x?token=abcd", "Bearer abc", 'x']`,
			"    1 | api-key\", \"***\", \"-t=x?token=****\", \"Bearer ***\", 'x']\n      |                                                   ^\n"},
		{"long line", `{"` + long + `": 'y', "` + long + `": 1}`,
			"    1 | " + strings.Repeat("x", 47) + `": 'y', "` + strings.Repeat("x", 44) + "\n      | " + strings.Repeat(" ", 50) + "^\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := configs.Parse("F", []byte(test.text))
			problems := configs.Problems(err)
			if len(problems) != 1 {
				t.Fatalf("%d problems", len(problems))
			}
			if got := problems[0].Excerpt(); got != test.want {
				t.Errorf("%s\ngot\n%swant\n%s", err, got, test.want)
			}
		})
	}
}

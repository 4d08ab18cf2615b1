// Reads every skill of zen-mcp in each way that a client has, with the official
// TypeScript SDK, and prints what it saw as one JSON object for the test that
// started it.
//
//   skills.mjs legacy|modern URL
//   skills.mjs legacy|modern -- COMMAND ARGS…

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [era, ...target] = process.argv.slice(2);
const client = new Client(
  { name: "e2e", version: "1" },
  era === "legacy" ? {} : { versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
await client.connect(
  target[0] === "--"
    ? new StdioClientTransport({ command: target[1], args: target.slice(2), stderr: "inherit" })
    : new StreamableHTTPClientTransport(new URL(target[0])),
);
const failure = (promise) => promise.then(() => "answered", (e) => `${e.code} ${e.message}`);

const skills = new SkillsClient(client);
const report = { supported: skills.supported, directoryRead: skills.directoryRead, verified: {} };
for (const entry of (await skills.list()).skills) {
  const files = [];
  for (const { uri } of entry.resources) {
    const file = await skills.read(entry, uri);
    if (!file.verified) throw new Error(`${uri} is not verified`);
    files.push(decodeURIComponent(uri.slice(entry.uri.length - "SKILL.md".length)));
  }
  report.verified[entry.frontmatter.name] = files;
}
report.folder = (await skills.readDirectory("skill://a-rich/references")).resources.map((r) => r.name);
report.tool = (await client.callTool({ name: "load_skill", arguments: { skill_id: "a-rich" } })).content[0].text;
report.prompt = (await client.getPrompt({ name: "a-rich", arguments: { task: "do it" } })).messages[0].content.text;
report.resource = (await client.readResource({ uri: "skill://a-rich/SKILL.md" })).contents[0].text;
report.prompts = (await client.listPrompts()).prompts.map((p) => p.name);
report.resources = (await client.listResources()).resources.map((r) => r.uri);
report.denied = {
  tool: (await client.callTool({ name: "load_skill", arguments: { skill_id: "secret" } })).content[0].text,
  prompt: await failure(client.getPrompt({ name: "secret" })),
  resource: await failure(client.readResource({ uri: "skill://secret/SKILL.md" })),
  skill: await failure(skills.get("skill://secret/SKILL.md")),
};
await client.close();
console.log(JSON.stringify(report));

// A client session against zen-mcp with one of the official TypeScript SDKs,
// printed as one JSON object for the test that started it.
//
//   client.mjs v1|v2 legacy|auto|modern URL
//   client.mjs v1|v2 legacy|auto|modern -- COMMAND ARGS…
//
// $TOKEN, if set, is sent to the URL as a bearer token.

const [sdk, era, ...target] = process.argv.slice(2);

async function load() {
  if (sdk === "v1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return { Client, StdioClientTransport, StreamableHTTPClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  return { Client, StdioClientTransport, StreamableHTTPClientTransport };
}

function negotiation() {
  if (sdk === "v1" || era === "legacy") return {};
  return { versionNegotiation: { mode: era === "auto" ? "auto" : { pin: "2026-07-28" } } };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport } = await load();
const client = new Client({ name: "e2e", version: "1" }, negotiation());
const transport =
  target[0] === "--"
    ? new StdioClientTransport({ command: target[1], args: target.slice(2), stderr: "inherit" })
    : new StreamableHTTPClientTransport(new URL(target[0]), {
        requestInit: process.env.TOKEN ? { headers: { Authorization: `Bearer ${process.env.TOKEN}` } } : {},
      });
await client.connect(transport);

// The two SDKs order the parameters of callTool differently.
const call = (name, args, options) =>
  sdk === "v1"
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args }, options);

const report = { server: client.getServerVersion(), instructions: client.getInstructions() };
report.tools = (await client.listTools()).tools.map((t) => t.name);
report.cwd = (await call("cwd", {})).content;
report.missing = await call("readFile", { path: "not-there.txt" });
report.written = await call("writeFile", { path: "ünï.txt", content: "one\r\ntwo\n" });
report.read = (await call("readFile", { path: "ünï.txt" })).content;
report.unknown = await call("nope", {}).then(
  () => "answered",
  (e) => `${e.code} ${e.message}`,
);

report.progress = [];
await call("sleep", { ms: 4500 }, { onprogress: (p) => report.progress.push(p.progress) });

const abort = new AbortController();
const began = Date.now();
const cancelled = call("sleep", { ms: 60000 }, { signal: abort.signal }).then(
  () => "answered",
  () => "cancelled",
);
setTimeout(() => abort.abort(), 200);
report.cancel = await cancelled;
report.cancelMs = Date.now() - began;
report.after = (await call("exist", { path: "." })).content;

await client.close();
console.log(JSON.stringify(report));

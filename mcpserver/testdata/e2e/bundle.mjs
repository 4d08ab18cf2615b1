// Installs an MCP bundle as an application does, with the code that Claude Desktop
// has for it, and prints what it would start, as JSON.
//
//   bundle.mjs FILE.mcpb DIR FOLDER
//
// The bundle is unpacked to DIR; FOLDER is what its user chose.

import { readFileSync } from "node:fs";
import { getMcpConfigForManifest, unpackExtension } from "@anthropic-ai/mcpb";

const [mcpbPath, outputDir, folder] = process.argv.slice(2);
if (!(await unpackExtension({ mcpbPath, outputDir, silent: true }))) process.exit(1);
const manifest = JSON.parse(readFileSync(`${outputDir}/manifest.json`, "utf8"));
const config = await getMcpConfigForManifest({
  manifest,
  extensionPath: outputDir,
  systemDirs: { HOME: folder, DOCUMENTS: folder },
  userConfig: { folder },
  pathSeparator: "/",
});
console.log(JSON.stringify({ version: manifest.version, ...config }));

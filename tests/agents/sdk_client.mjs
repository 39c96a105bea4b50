// A client of one TypeScript SDK: node sdk_client.mjs CLIENT_MODULE STDIO_MODULE COMMAND ARGS...
// It connects over stdio, lists the tools, writes a pack, reads it, and prints what it saw as one JSON document.
const [clientModule, stdioModule, command, ...args] = process.argv.slice(2);
const { Client } = await import(clientModule);
const { StdioClientTransport } = await import(stdioModule);

const client = new Client({ name: "sdk-client", version: "1" }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const { tools } = await client.listTools();
const document = { name: "from-sdk", title: "From an SDK", sections: [{ key: "scope", title: "Scope", description: "All." }] };
const written = await client.callTool({ name: "input", arguments: { action: "write", document } });
const page = await client.callTool({ name: "output", arguments: { action: "read", name: "from-sdk" } });
const refused = await client.callTool({ name: "output", arguments: { action: "read", name: "no-such-pack" } });
const { resources } = await client.listResources();
const server = client.getServerVersion().name;
await client.close();
process.stdout.write(JSON.stringify({
  tools: tools.map((tool) => tool.name),
  written: written.content[0].text,
  page: page.content[0].text,
  refused: [refused.isError, refused.content[0].text],
  resources: resources.map((resource) => resource.uri),
  server,
}));

// A client written with the official TypeScript SDK, which is in the folder HOME. It makes a small and a large call and says as JSON
// what came of them. `typescript_client.mjs HOME CALLS COMMAND ARGS…`, or for a server over HTTP `… HOME CALLS URL TOKEN`.
const [home, calls, target, ...rest] = process.argv.slice(2);
const sdk = (name) => import(`${home}/node_modules/@modelcontextprotocol/sdk/dist/esm/client/${name}.js`);
const { Client } = await sdk("index");

async function transport() {
  if (!target.startsWith("http")) {
    const { StdioClientTransport } = await sdk("stdio");
    return new StdioClientTransport({ command: target, args: rest, env: process.env, stderr: "ignore" });
  }
  const { StreamableHTTPClientTransport } = await sdk("streamableHttp");
  return new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } } });
}

const client = new Client({ name: "typescript", version: "1" });
const way = await transport();
await client.connect(way);

const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
const words = async (name, args) =>
  (await client.callTool({ name, arguments: args })).content.filter((block) => block.type === "text").map((block) => block.text).join("");

const [smallCall, largeCall] = JSON.parse(calls);
const before = await names();
const small = await words(...smallCall);
const told = await words(...largeCall);
const after = await names();
const handle = told.match(/session-[0-9a-f-]{36}\/[0-9a-f-]{36}|\bout_[0-9a-z]{6,12}\b/)?.[0];
const length = 3000;
const parts = [];
let part = "";
do {
  part = handle ? await words("get_tool_output", { id: handle, mode: "slice", slice: { start: length * parts.length, length } }) : told;
  parts.push(part);
} while (handle && [...part].length === length);

const server = client.getServerVersion().name;
console.log(JSON.stringify({ server, tools: after, changed: after.join() !== before.join(), small, large: parts.join("") }));
await client.close();

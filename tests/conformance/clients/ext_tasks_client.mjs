// A client of the tasks extension, with the official package for it, which is in the folder HOME. It calls each tool as a task and
// says as JSON what became of it: `ext_tasks_client.mjs HOME 2025-11-25|2026-07-28 CALLS COMMAND ARGS…`. A call is [tool, arguments],
// or [tool, arguments, true] if it is cancelled as soon as it is a task.
const [home, version, calls, command, ...args] = process.argv.slice(2);
const from = (path) => import(`${home}/node_modules/@modelcontextprotocol/${path}`);
const { Client } = await from("client/dist/index.mjs");
const { StdioClientTransport } = await from("client/dist/stdio.mjs");
const { createTaskSessionFromClient } = await from("ext-tasks/dist/client/index.js");

const clientInfo = { name: "ext-tasks", version: "1" };
const clientCapabilities = { elicitation: { form: {} } };
const isModern = version === "2026-07-28";
const negotiation = isModern ? { versionNegotiation: { mode: { pin: version } } } : {};
const client = new Client(clientInfo, { capabilities: clientCapabilities, ...negotiation });
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" });
await client.connect(transport);

// The SDK rejects the wire shapes of tasks, so the package wants a way past it: requests with ids of their own.
const waiting = new Map();
const toClient = transport.onmessage;
transport.onmessage = (message, extra) => {
  const answer = waiting.get(message.id);
  if (answer === undefined || "method" in message) return toClient(message, extra);
  waiting.delete(message.id);
  answer("error" in message ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
};
async function rawDispatch(request) {
  const id = `raw-${waiting.size}-${Math.random()}`;
  const answered = new Promise((resolve) => waiting.set(id, resolve));
  await transport.send({ jsonrpc: "2.0", id, ...request });
  return answered;
}

const framing = { protocolVersion: version, clientInfo, clientCapabilities };
const asked = [];
const session = createTaskSessionFromClient(client, {
  endpointId: "overspill",
  ...(isModern ? { rawDispatch, v2RequestFraming: framing } : {}),
  onInputRequest: async (request) => {
    asked.push(request.params.message);
    return { action: "accept", content: { which: "this" } };
  },
});
const outcomes = await Promise.all(
  JSON.parse(calls).map(async ([tool, given, isCancelled]) => {
    const execution = await session.callTool(tool, given, isModern ? {} : { task: { preference: "require", retentionMs: 60_000 } });
    if (isCancelled) await execution.cancel();
    const { outcome, lastTask } = await execution.settle();
    const said = outcome.status === "completed" ? outcome.result : (outcome.error?.message ?? null);
    return { kind: execution.kind, status: outcome.status, said, last: lastTask?.status };
  }),
);
console.log(JSON.stringify({ outcomes, asked }));
await session.close();
await client.close();

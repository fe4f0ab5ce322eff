// Cloudflare's code mode in front of one server. Reads and prints as `fastmcp_host.py` does.
// `createCodeTool` and what it does with code and tools are Cloudflare's; its executor is a Worker, which needs their platform, so
// the code runs in a context of Node's `vm` here.
import { readFileSync } from "node:fs";
import { register } from "node:module";
import vm from "node:vm";

// The package imports base classes that only Workers have.
const EMPTY = "export class WorkerEntrypoint {} export class DurableObject {} export class RpcTarget {}";
const HOOK = `export async function resolve(name, context, next) {
  return name === "cloudflare:workers"
    ? { url: "data:text/javascript,${encodeURIComponent(EMPTY)}", shortCircuit: true }
    : next(name, context);
}`;
register(`data:text/javascript,${encodeURIComponent(HOOK)}`);
const { createMCPClient } = await import("@ai-sdk/mcp");
const { Experimental_StdioMCPTransport: StdioTransport } = await import("@ai-sdk/mcp/mcp-stdio");
const { createCodeTool } = await import("@cloudflare/codemode/ai");

const PRELUDE = `const call = async (name, args = {}) => {
  const got = await codemode[name](args);
  if (got?.isError) throw new Error(got.content[0].text);
  return got?.structuredContent ?? got?.content?.map((each) => each.text).join("\\n") ?? got;
};
`;

const executor = {
  async execute(code, providers) {
    const scope = {};
    for (const each of Array.isArray(providers) ? providers : [{ name: "codemode", fns: providers }]) scope[each.name] = each.fns;
    try {
      return { result: await vm.runInNewContext(`(${code})()`, scope) };
    } catch (error) {
      return { error: String(error?.message ?? error) };
    }
  },
};

const [command, ...args] = process.argv.slice(2);
const programs = JSON.parse(readFileSync(0, "utf8"));
const client = await createMCPClient({ transport: new StdioTransport({ command, args, env: process.env }) });
const tool = createCodeTool({ tools: await client.tools(), executor });
for (const [name, [lines, expression]] of Object.entries(programs)) {
  const code = `async () => {\n${PRELUDE}${lines}\nreturn ${expression};\n}`;
  let said;
  try {
    const output = await tool.execute({ code }, { toolCallId: name, messages: [] });
    said = output.error ? { error: String(output.error).slice(0, 500) } : { value: output.result };
  } catch (error) {
    said = { error: String(error?.message ?? error).slice(0, 500) };
  }
  console.log(JSON.stringify({ name, ...said }));
}
await client.close();

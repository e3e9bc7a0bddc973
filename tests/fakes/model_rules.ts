/** The rules that real endpoints hold requests to, for both dialects: the first one broken, or null. */

// deno-lint-ignore no-explicit-any
type Loose = any;

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const TOOL_MESSAGES_MAX = 128;
const CACHE_MARKS_MAX = 4;

/** Why a request would be rejected, or null. */
export function findFault(dialect: "openai" | "anthropic", body: Loose): string | null {
  if (typeof body?.model !== "string" || body.model === "") return "model: no name";
  if (!Array.isArray(body.messages) || body.messages.length === 0) return "messages: empty";
  return dialect === "openai" ? faultOfOpenAi(body) : faultOfAnthropic(body);
}

function faultOfTools(
  tools: Loose,
  nameOf: (tool: Loose) => Loose,
  schemaOf: (tool: Loose) => Loose,
) {
  if (tools === undefined) return null;
  if (!Array.isArray(tools) || tools.length === 0) return "tools: an empty list";
  const names = new Set<string>();
  for (const tool of tools) {
    const name = nameOf(tool);
    if (!NAME.test(name ?? "")) return `tools: name ${JSON.stringify(name)}`;
    if (names.has(name)) return `tools: name ${name} twice`;
    names.add(name);
    if (typeof schemaOf(tool) !== "object" || schemaOf(tool) === null) {
      return `tools: ${name} has no schema`;
    }
  }
  return null;
}

function isText(value: Loose): boolean {
  return typeof value === "string" && value.trim() !== "" && value.isWellFormed() &&
    !value.includes("\0");
}

function faultOfOpenAi(body: Loose): string | null {
  const tools = faultOfTools(
    body.tools,
    (tool) => tool.function?.name,
    (tool) => tool.function?.parameters,
  );
  if (tools !== null) return tools;
  if (body.tool_choice !== undefined && body.tools === undefined) {
    return "tool_choice without tools";
  }
  let open: Set<string> | null = null;
  let answered = 0;
  let previous = "";
  for (const [index, message] of body.messages.entries()) {
    const at = `messages[${index}]`;
    const role = message.role;
    if (role === "tool") {
      if (open === null) return `${at}: a tool message without calls before it`;
      if (!open.delete(message.tool_call_id)) return `${at}: no open call ${message.tool_call_id}`;
      if (typeof message.content !== "string" || !isText(message.content)) {
        return `${at}: content is no text`;
      }
      if (++answered > TOOL_MESSAGES_MAX) {
        return `${at}: more than ${TOOL_MESSAGES_MAX} tool messages`;
      }
      previous = role;
      continue;
    }
    if (open !== null && open.size > 0) {
      return `${at}: calls without an answer: ${[...open].join(", ")}`;
    }
    open = null;
    if (role === "system" && index > 0) return `${at}: system not first`;
    if (!["system", "user", "assistant"].includes(role)) return `${at}: role ${role}`;
    if (role === previous) return `${at}: two ${role} messages in a row`;
    if (role === "assistant" && (previous === "" || previous === "system")) {
      return `${at}: begins with assistant`;
    }
    const fault = role === "assistant"
      ? faultOfCalls(message, at)
      : faultOfContent(message.content, at);
    if (fault !== null) return fault;
    if (role === "assistant" && message.tool_calls !== undefined) {
      open = new Set(message.tool_calls.map((call: Loose) => call.id));
      answered = 0;
    }
    previous = role;
  }
  if (open !== null && open.size > 0) return `calls without an answer: ${[...open].join(", ")}`;
  return previous === "assistant" ? "the last message is the assistant's" : null;
}

function faultOfContent(content: Loose, at: string): string | null {
  if (typeof content === "string") return isText(content) ? null : `${at}: blank content`;
  if (!Array.isArray(content) || content.length === 0) return `${at}: no content`;
  for (const part of content) {
    const isGood = part.type === "text" ? isText(part.text) : part.type === "image_url" &&
      /^data:image\/(png|jpeg|gif|webp);base64,/.test(part.image_url?.url);
    if (!isGood) return `${at}: part of type ${part.type}`;
  }
  return null;
}

function faultOfCalls(message: Loose, at: string): string | null {
  const calls = message.tool_calls;
  if (calls === undefined) return isText(message.content) ? null : `${at}: blank reply`;
  if (!Array.isArray(calls) || calls.length === 0) return `${at}: empty tool_calls`;
  if (calls.length > TOOL_MESSAGES_MAX) return `${at}: more than ${TOOL_MESSAGES_MAX} calls`;
  const ids = new Set<string>();
  for (const call of calls) {
    if (typeof call.id !== "string" || call.id === "" || ids.has(call.id)) {
      return `${at}: call id ${call.id}`;
    }
    ids.add(call.id);
    if (!NAME.test(call.function?.name ?? "")) return `${at}: call name ${call.function?.name}`;
    if (!isObjectText(call.function?.arguments)) return `${at}: arguments are no object`;
  }
  return null;
}

function isObjectText(text: Loose): boolean {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function faultOfAnthropic(body: Loose): string | null {
  if (!Number.isInteger(body.max_tokens) || body.max_tokens < 1) return "max_tokens: required";
  const budget = body.thinking?.budget_tokens;
  if (budget !== undefined && (budget < 1024 || budget >= body.max_tokens)) {
    return "thinking: budget_tokens";
  }
  if (body.thinking?.type === "enabled" && (body.temperature ?? 1) !== 1) {
    return "thinking: temperature";
  }
  const tools = faultOfTools(body.tools, (tool) => tool.name, (tool) => tool.input_schema);
  if (tools !== null) return tools;
  if (JSON.stringify(body).split('"cache_control"').length - 1 > CACHE_MARKS_MAX) {
    return "too many cache_control";
  }
  const ids = new Set<string>();
  let open = new Set<string>();
  for (const [index, message] of body.messages.entries()) {
    const at = `messages[${index}]`;
    if (message.role !== (index % 2 === 0 ? "user" : "assistant")) {
      return `${at}: roles must alternate`;
    }
    const content = message.content;
    if (!Array.isArray(content) || content.length === 0) return `${at}: no content`;
    if (JSON.stringify(content).includes('"tool_') && body.tools === undefined) {
      return `${at}: tools must be defined`;
    }
    const fault = message.role === "user"
      ? faultOfResults(content, open, at)
      : faultOfBlocks(content, ids, at);
    if (fault !== null) return fault;
    open = message.role === "assistant"
      ? new Set(
        content.filter((block: Loose) => block.type === "tool_use").map((block: Loose) => block.id),
      )
      : new Set();
  }
  return body.messages.at(-1).role === "user" ? null : "the last message is the assistant's";
}

function faultOfResults(content: Loose[], open: Set<string>, at: string): string | null {
  let results = 0;
  let others = false;
  for (const block of content) {
    if (block.type === "tool_result") {
      if (others) return `${at}: tool_result after other content`;
      if (!open.delete(block.tool_use_id)) return `${at}: no open call ${block.tool_use_id}`;
      if (++results > TOOL_MESSAGES_MAX) return `${at}: more than ${TOOL_MESSAGES_MAX} results`;
      continue;
    }
    others = true;
    if (block.type === "text" ? !isText(block.text) : block.type !== "image") {
      return `${at}: block ${block.type}`;
    }
  }
  return open.size > 0 ? `${at}: calls without an answer: ${[...open].join(", ")}` : null;
}

function faultOfBlocks(content: Loose[], ids: Set<string>, at: string): string | null {
  for (const block of content) {
    if (block.type === "tool_use") {
      if (!NAME.test(block.id ?? "") || ids.has(block.id)) return `${at}: call id ${block.id}`;
      ids.add(block.id);
      if (!NAME.test(block.name ?? "")) return `${at}: call name ${block.name}`;
      if (typeof block.input !== "object" || block.input === null || Array.isArray(block.input)) {
        return `${at}: input is no object`;
      }
    } else if (block.type === "thinking") {
      if (typeof block.signature !== "string" || block.signature === "") {
        return `${at}: thinking without signature`;
      }
    } else if (block.type === "redacted_thinking") {
      if (typeof block.data !== "string") return `${at}: redacted_thinking without data`;
    } else if (block.type !== "text" || !isText(block.text)) return `${at}: block ${block.type}`;
  }
  return null;
}

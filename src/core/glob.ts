/** Globs over names: `*` any run of characters but `/`, `**` any run, `?` one character. */

/** Compiles a glob; everything else in it is literal. */
export function globToRegExp(glob: string): RegExp {
  let source = "";
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i]!;
    if (c === "*") {
      if (glob[i + 1] === "*") {
        source += ".*";
        i++;
      } else source += "[^/]*";
    } else if (c === "?") source += "[^/]";
    else source += c.replace(/[\\^$.|+()[\]{}]/g, "\\$&");
  }
  return new RegExp(`^${source}$`, "su");
}

/**
 * Whether a tool name `server/tool` is granted by a list of globs: `*` alone means every tool,
 * `!GLOB` removes. Order does not matter: a removal wins.
 */
export function grantsTool(globs: readonly string[], name: string): boolean {
  return grants(globs, (glob) => matchesTool(glob, name));
}

/**
 * Whether one `server/tool` glob matches; a glob without `/` matches a whole server or `*` all. What a
 * server calls its tools is its own affair: in the tool's part `*` and `?` also stand for `/`.
 */
export function matchesTool(glob: string, name: string): boolean {
  return matches(glob, name, false);
}

/** As {@link grantsTool}, of every tool that `inner` matches at once; a removal must match them all. */
export function grantsTools(globs: readonly string[], inner: string): boolean {
  return grants(globs, (glob) => coversTools(glob, inner));
}

/**
 * Whether every tool that the glob `inner` matches is matched by `outer`. True is certain; of two ways
 * to write one glob it may say false.
 */
export function coversTools(outer: string, inner: string): boolean {
  return matches(outer, inner, true);
}

/** Whether two `server/tool` globs may match one and the same tool. */
export function overlapTools(one: string, other: string): boolean {
  const [server, tool] = splitGlob(one);
  const [otherServer, otherTool] = splitGlob(other);
  return overlap(server, otherServer) && overlap(tool, otherTool);
}

/** Place by place in the first: whether what stands before it can be what stands before each of the second. */
function overlap(one: readonly Token[], other: readonly Token[]): boolean {
  let reached = new Set([0]);
  const pass = (at: number) => {
    reached.add(at);
    if (other[at] === RUN) pass(at + 1);
  };
  pass(0);
  for (const token of one) {
    const before = reached;
    reached = new Set();
    for (const at of before) {
      if (token === RUN) { for (let to = at; to <= other.length; to++) pass(to); }
      else if (other[at] === RUN) pass(at);
      else if (at < other.length && (token === ONE || other[at] === ONE || token === other[at])) {
        pass(at + 1);
      }
    }
  }
  return reached.has(other.length);
}

function grants(globs: readonly string[], hits: (glob: string) => boolean): boolean {
  let granted = false;
  for (const glob of globs) {
    if (glob.startsWith("!")) {
      if (hits(glob.slice(1))) return false;
    } else granted ||= hits(glob);
  }
  return granted;
}

type Token = string | typeof ONE | typeof RUN;
const ONE = Symbol("?");
const RUN = Symbol("*");

/** Matches part by part; where the second is a glob too, its wildcards are tokens to be matched. */
function matches(glob: string, other: string, isGlob: boolean): boolean {
  const [server, tool] = splitGlob(glob);
  const slash = other.indexOf("/");
  const parts = isGlob
    ? splitGlob(other)
    : slash === -1
    ? null
    : [[...other.slice(0, slash)], [...other.slice(slash + 1)]] as const;
  return parts !== null && matchTokens(server, parts[0]) && matchTokens(tool, parts[1]);
}

function splitGlob(glob: string): readonly [Token[], Token[]] {
  if (glob === "*" || glob === "**") return [[RUN], [RUN]];
  const slash = glob.indexOf("/");
  return slash === -1
    ? [tokensOf(glob), [RUN]]
    : [tokensOf(glob.slice(0, slash)), tokensOf(glob.slice(slash + 1))];
}

/** A run of wildcards is written one way: first each `?`, then one `*`. */
function tokensOf(glob: string): Token[] {
  const tokens: Token[] = [];
  let run = false;
  const close = () => {
    if (run) tokens.push(RUN);
    run = false;
  };
  for (const c of glob) {
    if (c === "*") run = true;
    else if (c === "?") tokens.push(ONE);
    else {
      close();
      tokens.push(c);
    }
  }
  close();
  return tokens;
}

/** The one place to go back to is after the last `*`: what stands before it has been matched. */
function matchTokens(pattern: readonly Token[], text: readonly Token[]): boolean {
  let at = 0;
  let starAt = -1;
  let textAt = 0;
  let retryAt = 0;
  while (textAt < text.length) {
    const token = pattern[at];
    const given = text[textAt];
    if (token === RUN) {
      starAt = at++;
      retryAt = textAt;
    } else if (token !== undefined && (token === given || (token === ONE && given !== RUN))) {
      at++;
      textAt++;
    } else if (starAt !== -1) {
      at = starAt + 1;
      textAt = ++retryAt;
    } else return false;
  }
  while (pattern[at] === RUN) at++;
  return at === pattern.length;
}

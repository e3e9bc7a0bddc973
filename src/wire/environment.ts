/** The clean environment: what processes below the supervisor get without asking. */

/**
 * The id of the agent that a process belongs to: the supervisor sets it for the agent, and whatever is
 * started below inherits it. Who left group, session and parents behind is found by it all the same.
 */
export const AGENT_ID_VARIABLE = "AGENTD_AGENT_ID";

/** How a process table with environments shows whose a process is. */
export function agentMark(agentId: string): string {
  return `${AGENT_ID_VARIABLE}=${agentId}`;
}

/** Variables that every process below an agent gets, where they are set. */
export const CLEAN_ENVIRONMENT: readonly string[] = [
  AGENT_ID_VARIABLE,
  "PATH",
  "HOME",
  "TMPDIR",
  "LANG",
  // Without these no program starts on Windows.
  "SYSTEMROOT",
  "COMSPEC",
  "PATHEXT",
  "TEMP",
  "TMP",
  "USERPROFILE",
  "APPDATA",
  "LOCALAPPDATA",
];

/** The clean environment of this process's children. */
export function cleanEnvironment(
  env: (name: string) => string | undefined,
): Record<string, string> {
  const clean: Record<string, string> = {};
  for (const name of CLEAN_ENVIRONMENT) {
    const value = env(name);
    if (value !== undefined) clean[name] = value;
  }
  return clean;
}

/**
 * How the network is reached: agents get these, and nothing below them. The runtime's own `fetch`
 * reads them, by the rules of https://docs.deno.com/runtime/reference/env_variables/.
 */
const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
const TRUST_VARIABLES = ["DENO_CERT", "DENO_TLS_CA_STORE"];

/** What no proxy is asked for: a model of this machine is not behind one. */
const LOOPBACK = "localhost,127.0.0.1,::1";

/** Proxy variables that are set to a URL with credentials in it. An environment is no place for those. */
export function withheldProxies(env: (name: string) => string | undefined): string[] {
  return proxiesSet(env).filter(holdsCredentials).map(([name]) => name);
}

/** The clean environment, and how the network is reached: what an agent gets. */
export function agentEnvironment(
  env: (name: string) => string | undefined,
): Record<string, string> {
  const variables = cleanEnvironment(env);
  const proxies = proxiesSet(env).filter((proxy) => !holdsCredentials(proxy));
  for (const [name, url] of proxies) variables[name] = url;
  if (proxies.length > 0) {
    const direct = env("NO_PROXY") ?? env("no_proxy") ?? "";
    variables["NO_PROXY"] = direct === "" ? LOOPBACK : `${direct},${LOOPBACK}`;
  }
  for (const name of TRUST_VARIABLES) {
    const value = env(name);
    if (value !== undefined) variables[name] = value;
  }
  return variables;
}

type ProxyVariable = [name: string, url: string];

/** Also where it is written without a scheme, which runtimes take. */
function holdsCredentials([, url]: ProxyVariable): boolean {
  return url.includes("@");
}

function proxiesSet(env: (name: string) => string | undefined): ProxyVariable[] {
  return PROXY_VARIABLES.flatMap((upper) => [upper, upper.toLowerCase()])
    .flatMap((name): ProxyVariable[] => {
      const url = env(name);
      return url === undefined || url === "" ? [] : [[name, url]];
    });
}

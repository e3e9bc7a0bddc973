/** URLs of endpoints and tool servers: what may be contacted at all. */

import { failed, type Outcome, success } from "../core/outcome.ts";
import { showValue } from "./problem.ts";
import { isCredentialName } from "./secrets.ts";
import { hideCredentials } from "./texts.ts";

/** Why a text is no usable URL; `value` has its credentials hidden. */
export interface UrlFault {
  value: string;
  message: string;
  hint: string;
}

/**
 * The URL without a slash at its end: http or https, no credentials, no fragment, and http only to
 * this machine unless `insecure`.
 */
export function checkUrl(text: string, insecure: boolean): Outcome<string, UrlFault> {
  const value = hideCredentials(text);
  const wrong = (message: string, hint: string): { ok: false; failure: UrlFault } =>
    failed({ value, message, hint });
  // A host with its port reads as a scheme, but nobody means one.
  const host = /^(\[[\da-f:]+\]|[\w.-]+)(:\d+)?(\/|$)/i.exec(text);
  if (!URL.canParse(text) || host !== null) {
    return wrong(
      `${showValue(value)} is no URL`,
      host !== null
        ? `write ${isLoopback(host[1]!.toLowerCase()) ? "http" : "https"}://${value}`
        : "write it as in https://host/v1",
    );
  }
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return wrong(`${showValue(value)} is neither http:// nor https://`, "");
  }
  const inQuery = [...url.searchParams].some(([name, set]) => set !== "" && isCredentialName(name));
  if (url.username !== "" || url.password !== "" || inQuery) {
    return wrong(
      `${showValue(value)} has credentials in it`,
      "take them out and use a token or a header with ${env:NAME}",
    );
  }
  if (url.hash !== "") return wrong(`${showValue(value)} has a fragment`, "leave out the #");
  if (url.protocol === "http:" && !insecure && !isLoopback(url.hostname)) {
    return wrong(
      `${showValue(value)} is not encrypted and not on this machine`,
      "use https://, or --allow-insecure",
    );
  }
  return success(url.href.replace(/\/+$/, ""));
}

/** Whether a host name can only mean this machine. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" ||
    /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/** The official SDK, loaded only when there is a server to speak with. */

/** The SDK's module. */
export type Sdk = typeof import("@modelcontextprotocol/client");

/** One SDK client. */
export type SdkClient = InstanceType<Sdk["Client"]>;

/** What the SDK wants of a transport. */
export type SdkTransport = Parameters<SdkClient["connect"]>[0];

/** One JSON-RPC message. */
export type Message = Parameters<SdkTransport["send"]>[0];

/** What the SDK says beside a message that it sends. */
export type SendOptions = Parameters<SdkTransport["send"]>[1];

/** Loads the SDK. Runs that only use self tools never call it. */
export function loadSdk(): Promise<Sdk> {
  return import("@modelcontextprotocol/client");
}

/**
 * A result schema that lets everything pass: results are checked by hand where they are used, so
 * that one malformed entry costs that entry, and nothing is parsed and copied twice.
 */
export const PASS = {
  "~standard": {
    version: 1 as const,
    vendor: "agentd",
    validate: (value: unknown): { value: unknown } => ({ value }),
  },
};

/** Instead of the SDK's own per-request timer, which ours replaces: the longest there is. */
export const SDK_TIMEOUT_MS = 2 ** 31 - 1;

import type { EventName } from "../wire/telemetry.ts";

/** What a line says beside its event. */
export type Fields = Record<string, unknown>;

/** Telemetry. Contract: never throws, never waits; fields are masked and content-free by then. */
export interface TelemetryPort {
  emit(event: EventName, fields?: Fields, level?: "debug" | "info" | "warn" | "error"): void;
}

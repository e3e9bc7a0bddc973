/**
 * The agent process's main thread. It carries control frames, owns the stdio servers and declared
 * commands, and starts the loop in a Worker with the permissions of the payload. It never parses
 * what servers say and never waits on the loop. The end of stdin is the supervisor's death.
 */

import { FRAME_BYTES_MAX, FRAME_QUEUE_BYTES_MAX, STDERR_LINE_BYTES_MAX } from "../core/limits.ts";
import { isObject, parseJson } from "../core/json.ts";
import { Vault } from "../core/secret.ts";
import { clip } from "../core/text.ts";
import type { TelemetryPort } from "../ports/telemetry.ts";
import type { WorkerHandle } from "../ports/worker.ts";
import type { FromAgent, ToAgent } from "../wire/control.ts";
import { AGENT_ID_VARIABLE, agentMark, cleanEnvironment } from "../wire/environment.ts";
import { encodeFrame, FrameWriter, readLines } from "../wire/frame_stream.ts";
import type { AgentPayload } from "../wire/payload.ts";
import { isDenial, workerPermissions } from "../wire/permissions.ts";
import { type AgentResult, failedResult } from "../wire/result.ts";
import type { ToWorker } from "../wire/worker.ts";
import { Desk } from "./desk.ts";
import { endGroup, sweepGroup } from "./group.ts";
import type { BrokerPorts } from "./ports.ts";
import { Servers } from "./servers.ts";

/** Runs the role `__agent` to its end. It leaves the process by `ports.self.exit`. */
export async function runBroker(ports: BrokerPorts): Promise<void> {
  const broker = new Broker(ports);
  await readLines(ports.self.stdin, FRAME_BYTES_MAX, (event) => {
    if (event.type !== "line") return false;
    const parsed = parseJson(event.text);
    if (!parsed.ok || !isObject(parsed.value) || parsed.value.v !== 1) return false;
    return broker.receive(parsed.value as unknown as ToAgent);
  });
  await broker.supervisorGone();
}

class Broker {
  readonly #ports: BrokerPorts;
  readonly #environment: Record<string, string>;
  /** What marks this agent's processes; an embedded one has none. */
  readonly #mark: string | undefined;
  readonly #out: FrameWriter;
  #agent: {
    payload: AgentPayload;
    vault: Vault;
    telemetry: TelemetryPort;
    servers: Servers;
    desk: Desk;
  } | null = null;
  #worker: WorkerHandle | null = null;
  #ready = false;
  /** What the Worker sent before `ready`; bounded by the moment that revoking takes. */
  readonly #early: FromAgent[] = [];
  #ending = false;

  constructor(ports: BrokerPorts) {
    this.#ports = ports;
    this.#environment = cleanEnvironment(ports.self.env);
    const agentId = this.#environment[AGENT_ID_VARIABLE];
    this.#mark = agentId === undefined ? undefined : agentMark(agentId);
    this.#out = new FrameWriter(ports.self.stdout, FRAME_QUEUE_BYTES_MAX);
  }

  /** Acts on one frame; false where the supervisor speaks another language and all is over. */
  receive(frame: ToAgent): boolean {
    switch (frame.type) {
      case "ping":
        this.#send({ v: 1, type: "pong", n: frame.n });
        return true;
      case "start":
        if (this.#agent) return false;
        this.#start(frame.payload, frame.secrets);
        return true;
      case "cancel":
        this.#toWorker({ type: "cancel", reason: frame.reason });
        return true;
      case "reply":
        this.#toWorker({ type: "reply", id: frame.id, ok: frame.ok, value: frame.value });
        return true;
      case "child_ended":
        this.#toWorker({ type: "child_ended", end: frame.end });
        return true;
      case "deliver":
        this.#toWorker({ type: "deliver", delivery: frame.delivery });
        return true;
      case "watch":
        this.#toWorker({ type: "watch", add: frame.add, remove: frame.remove });
        return true;
      default:
        return false;
    }
  }

  /** Nobody is left to report to: the group dies, and everything below it that can be found. */
  async supervisorGone(): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    this.#worker?.terminate();
    await endGroup(this.#ports, this.#ports.self.pid, this.#mark);
  }

  #start(payload: AgentPayload, secrets: Record<string, string>): void {
    const { clock, process, program, self, worker } = this.#ports;
    const vault = Vault.from(secrets);
    const { identity } = payload;
    const telemetry = this.#ports.openTelemetry(
      {
        run_id: identity.runId,
        agent_id: identity.agentId,
        agent_path: identity.path,
        comp: "broker",
        pid: self.pid,
        trace_id: identity.traceId,
        span_id: identity.parentSpanId,
        parent_span_id: null,
      },
      payload.log,
      vault,
    );
    telemetry.emit("proc.start");
    const environment = this.#environment;
    const servers = new Servers({
      payload,
      vault,
      environment,
      clock,
      process,
      program,
      telemetry,
    });
    const desk = new Desk({
      payload,
      vault,
      environment,
      groupId: self.pid,
      clock,
      process,
      telemetry,
      servers,
      // Before `ready` an agent has nothing to say: revoking takes a moment, the Worker is quicker.
      toSupervisor: (frame) => this.#ready ? this.#send(frame) : void this.#early.push(frame),
      toWorker: (message, transfer) => this.#toWorker(message, transfer),
      up: () => this.#up(),
      ended: (result) => void this.#end(result, 0),
      failed: (message) => this.#workerFailed(message),
    });
    this.#agent = { payload, vault, telemetry, servers, desk };
    this.#worker = worker.start({
      name: `loop ${identity.path}`,
      permissions: workerPermissions(payload.worker),
      onMessage: (message) => desk.receive(message),
      onError: (message) => this.#workerFailed(message),
    });
    this.#toWorker({ type: "start", payload, secrets });
  }

  #up(): void {
    const agent = this.#agent!;
    const ready = () => {
      agent.telemetry.emit("proc.ready");
      this.#send({ v: 1, type: "ready" });
      this.#ready = true;
      for (const frame of this.#early.splice(0)) this.#send(frame);
    };
    // From source each process has its own flags; compiled, everything is baked in until now.
    if (this.#ports.self.standalone) this.#ports.self.revokeAllButRun().then(ready, ready);
    else ready();
  }

  #workerFailed(message: string): void {
    const { vault, telemetry } = this.#agent!;
    const masked = clip(vault.mask(message), STDERR_LINE_BYTES_MAX);
    if (isDenial(masked)) {
      telemetry.emit("permission.denied", { message: masked }, "error");
    }
    telemetry.emit("loop.error", { err: { type: "worker", message: masked } }, "error");
    void this.#end(failedResult("crashed", `the loop died: ${masked}`), 1);
  }

  async #end(result: AgentResult, code: number): Promise<void> {
    if (this.#ending) return;
    this.#ending = true;
    const { process, self } = this.#ports;
    const { servers, desk, telemetry } = this.#agent!;
    // The supervisor gets the result first: closing the servers costs it no time.
    this.#send({ v: 1, type: "result", result });
    desk.stop();
    // What servers started in sessions of their own can only be found while they live.
    const left = servers.pids().length > 0 || desk.ranCommands
      ? await process.table(this.#mark)
      : [];
    await servers.closeAll();
    this.#worker?.terminate();
    sweepGroup(this.#ports, left, telemetry);
    telemetry.emit("proc.exit", { code });
    await this.#out.flushed();
    self.exit(code);
  }

  #send(frame: FromAgent): void {
    const bytes = encodeFrame(frame);
    if (bytes.length > FRAME_BYTES_MAX) {
      if (frame.type === "result") {
        this.#send({
          ...frame,
          result: {
            ...frame.result,
            result: null,
            reason: "crashed: the result is over the size of a frame",
            status: "crashed",
            abort: null,
          },
        });
      } else if (frame.type === "request") {
        this.#toWorker({
          type: "reply",
          id: frame.id,
          ok: false,
          value: { why: "the request is over the size of a frame" },
        });
      }
      return;
    }
    this.#out.send(bytes);
  }

  #toWorker(message: ToWorker, transfer?: Transferable[]): void {
    this.#worker?.post(message, transfer);
  }
}

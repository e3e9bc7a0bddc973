/** A Worker with narrowed permissions. `permissions` is Deno's own object. */
export interface WorkerSpec {
  permissions: Readonly<Record<string, boolean | string[]>>;
  name: string;
  onMessage(message: unknown): void;
  /** An uncaught error, a failed load or the end of its memory: the Worker is gone. */
  onError(message: string): void;
}

/** A running Worker. Contract: after `terminate` no callback comes. */
export interface WorkerHandle {
  post(message: unknown, transfer?: Transferable[]): void;
  terminate(): void;
}

/** Workers. Contract: `start` never throws; a Worker that cannot start reports through `onError`. */
export interface WorkerPort {
  start(spec: WorkerSpec): WorkerHandle;
}

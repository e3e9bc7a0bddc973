/** Chance. Contract: `unit` is in [0, 1). */
export interface RandomPort {
  bytes(count: number): Uint8Array;
  unit(): number;
}

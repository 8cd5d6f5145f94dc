// The members of autocannon that the flood uses; the package has no types.

declare module 'autocannon' {
  export interface FloodRequest {
    method: string;
    path: string;
    body?: string;
    headers?: Record<string, string>;
    setupRequest?(request: FloodRequest, context: Record<string, unknown>): FloodRequest;
    onResponse?(status: number, body: string, context: Record<string, unknown>): void;
  }

  export interface FloodResult {
    readonly errors: number;
    readonly timeouts: number;
    readonly mismatches: number;
    readonly resets: number;
    readonly requests: { readonly total: number; readonly average: number };
    readonly latency: { readonly p50: number; readonly p99: number; readonly max: number };
  }

  export default function autocannon(options: {
    url: string;
    connections: number;
    /** Seconds. */
    duration: number;
    /** Seconds without an answer. */
    timeout: number;
    requests: FloodRequest[];
  }): Promise<FloodResult>;
}

// Repeats requests to the nodes of a cluster while it cannot carry them out, because its NATS servers elect a leader or the
// machine is busy.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const WAIT_MS_MAX = 300_000;
const PAUSE_MS = 100;

export interface PatientReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Each POST has an idempotency key, so that one whose reply was lost is not carried out twice. */
export async function patientFetch(url: string, init: RequestInit = {}): Promise<PatientReply> {
  const headers = new Headers(init.headers);
  if (init.method === 'POST' && !headers.has('idempotency-key')) {
    headers.set('idempotency-key', randomUUID());
  }
  const deadlineMs = performance.now() + WAIT_MS_MAX;
  for (;;) {
    const reply = await fetch(url, { ...init, headers });
    const text = await reply.text();
    const { status } = reply;
    const isInFlight = status === 409 && text.includes('"code":"idempotency_in_flight"');
    const mayPass = status === 503 || status === 504 || isInFlight;
    if (!mayPass || performance.now() > deadlineMs) return { status, headers: reply.headers, text };
    await sleep(PAUSE_MS);
  }
}

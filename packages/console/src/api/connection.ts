// Whether the server can be reached. After a request has failed to reach it, its liveness is polled
// until it answers again.

import { createStore } from './store.js';

export type ConnectionState = 'connected' | 'lost';

const POLL_MS = 1_500;

export const connection = createStore<ConnectionState>('connected');

export function connectionWorks(): void {
  connection.set('connected');
}

export function connectionLost(): void {
  if (connection.get() === 'lost') return;
  connection.set('lost');
  schedulePoll();
}

function schedulePoll(): void {
  setTimeout(async () => {
    if (connection.get() === 'connected') return;
    const isBack = await fetch(new URL('../livez', document.baseURI)).then(
      (response) => response.ok,
      () => false,
    );
    if (isBack) connectionWorks();
    else schedulePoll();
  }, POLL_MS);
}

// What orval's client calls: `fetch` with the address of the service, and the reply in orval's form.

import { URL_OF_SERVICE } from './sample';

/** orval sets no content type where a body may have several; what it sends is always JSON. */
export async function callService<Reply>(path: string, options: RequestInit): Promise<Reply> {
  const headers = new Headers(options.headers);
  headers.set('content-type', 'application/json');
  const reply = await fetch(`${URL_OF_SERVICE}${path}`, { ...options, headers });
  return { data: await reply.json(), status: reply.status, headers: reply.headers } as Reply;
}

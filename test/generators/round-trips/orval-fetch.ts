// The function that orval's client calls: `fetch` with the address of the service and the reply in orval's form.

import { URL_OF_SERVICE } from './sample';

/** Sets the content type, which orval leaves out if a body may have several. It always sends JSON. */
export async function callService<Reply>(path: string, options: RequestInit): Promise<Reply> {
  const headers = new Headers(options.headers);
  headers.set('content-type', 'application/json');
  const reply = await fetch(`${URL_OF_SERVICE}${path}`, { ...options, headers });
  return { data: await reply.json(), status: reply.status, headers: reply.headers } as Reply;
}

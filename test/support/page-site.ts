// A web site for browser tests: one page, the compiled modules of the client, and a path to which the page posts its
// result.

import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { withResolvers } from './waiting.js';

/** The files of the package, with the modules of `src/common` that they import. */
const MODULES = new URL('../../../packages/client/dist/', import.meta.url);

export interface PageSite {
  readonly origin: string;
  /** What the page posted to /result. */
  readonly result: Promise<string>;
  close(): void;
}

type Handler = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** @param serveOther serves all other paths; by default, with 404. */
export async function startPageSite(
  page: string,
  serveOther: Handler = (_, outgoing) => outgoing.writeHead(404).end(),
): Promise<PageSite> {
  const { promise: result, resolve: report } = withResolvers<string>();
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { url = '/' } = incoming;
    if (url === '/') {
      outgoing.writeHead(200, { 'content-type': 'text/html' }).end(page);
    } else if (url.startsWith('/modules/')) {
      const code = await readFile(new URL(url.slice('/modules/'.length), MODULES));
      outgoing.writeHead(200, { 'content-type': 'text/javascript' }).end(code);
    } else if (url === '/result') {
      let text = '';
      for await (const chunk of incoming) text += chunk;
      outgoing.end();
      report(text);
    } else {
      serveOther(incoming, outgoing);
    }
  };
  const site = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch((error: unknown) => {
      outgoing.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve) => {
    site.listen(0, '127.0.0.1', resolve);
  });
  return {
    origin: `http://127.0.0.1:${(site.address() as AddressInfo).port}`,
    result,
    close() {
      site.close();
      site.closeAllConnections();
    },
  };
}

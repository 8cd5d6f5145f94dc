// The composition root: a running service from a configuration. Parts are opened in the order in
// which they need each other and closed in the reverse; the listener comes last, so that whoever
// can connect gets an answer.

import type { AddressInfo } from 'node:net';
import pino, { type Logger as PinoLogger } from 'pino';
import { systemClock } from './clock.js';
import type { Config } from './config.js';
import { Database } from './database/database.js';
import { createEngine } from './engine/choose-engine.js';
import { SagittaError } from './errors.js';
import { createApp, stopApp } from './http/app.js';
import { Authenticator } from './http/authenticator.js';
import { createMetrics } from './metrics.js';
import { createThreadPool } from './pool.js';
import { openLmdbStore } from './store/lmdb-store.js';

export interface RunningServer {
  /** Where it listens, `http://127.0.0.1:8484`. */
  readonly url: string;
  readonly engine: { readonly name: string; readonly reason: string };
  /** Resolves when every collection is loaded or has failed. */
  readonly loaded: Promise<void>;
  /** Finishes what was accepted, at most for the configured time, and closes everything. */
  stop(): Promise<void>;
}

/** Throws what cannot be served: a locked or newer data directory, a port in use, an engine that does not work here. */
export async function startServer(config: Config): Promise<RunningServer> {
  const startedAt = performance.now();
  const logger = createLogger(config);
  const closers: (() => Promise<void>)[] = [];
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const store = await openLmdbStore({ directory: config.dataDir });
    closers.push(() => store.close());
    const pool = createThreadPool({
      workerUrl: new URL('./worker.js', import.meta.url),
      ...(config.threads === null ? {} : { threadCount: config.threads }),
    });
    closers.push(() => pool.close());
    const { engine, reason, gauges } = await createEngine({
      requested: config.engine,
      simdTarget: config.simd === 'auto' ? null : config.simd,
      deviceMemory: config.deviceMemory,
      pool,
      logger,
    });
    closers.push(() => engine.close());
    logger.info({ engine: engine.name, reason }, 'engine chosen');
    const database = await Database.open({
      store,
      engine,
      engineReason: reason,
      pool,
      limits: config.limits,
      clock: systemClock,
      logger,
    });
    closers.push(() => database.close());
    const metrics = createMetrics();
    for (const { name, help, read } of gauges) metrics.addGauge(name, help, read);
    const app = await createApp({
      database,
      pool,
      limits: config.limits,
      defaultCollection: config.defaultCollection,
      logger,
      metrics,
      authenticator: new Authenticator(),
    });
    closers.push(() => stopApp(app, { deadlineMs: config.shutdownMs }));
    await app.listen({ host: config.host, port: config.port }).catch((error: unknown) => {
      throw explainListenError(error, config);
    });
    const url = urlOf(app.server.address() as AddressInfo);
    logger.info({ url, milliseconds: Math.round(performance.now() - startedAt) }, 'listening');
    database.loaded.then(() => {
      logger.info({ milliseconds: Math.round(performance.now() - startedAt) }, 'ready');
    });
    return {
      url,
      engine: { name: engine.name, reason },
      loaded: database.loaded,
      async stop() {
        logger.info({}, 'stopping');
        await closeAll();
        logger.info({}, 'stopped');
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** JSON lines on stderr: stdout is for what a command answers. */
function createLogger(config: Config): PinoLogger {
  return pino({ level: config.logLevel, base: null }, pino.destination({ fd: 2, sync: false }));
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function explainListenError(error: unknown, { host, port }: Config): unknown {
  const { code } = error as NodeJS.ErrnoException;
  const found = {
    EADDRINUSE: 'another program listens there',
    EACCES: 'this user may not listen there',
    EADDRNOTAVAIL: 'this machine does not have that address',
    ENOTFOUND: 'that name has no address',
  }[code ?? ''];
  if (found === undefined) return error;
  return new SagittaError(
    'configuration_invalid',
    `Cannot listen on ${host}:${port}: ${found}. Set SAGITTA_HOST and SAGITTA_PORT to an address that is free.`,
    { cause: error },
  );
}

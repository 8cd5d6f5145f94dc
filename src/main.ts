// The composition root: starts the service from a configuration. Parts are opened in the order of
// their dependencies and closed in reverse; the listener is last, so that every client that can
// connect gets a reply.

import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pino, { type Logger as PinoLogger } from 'pino';
import { systemClock } from './common/clock.js';
import { SagittaError } from './common/errors.js';
import { packageVersion } from './common/package-version.js';
import type { Tracer } from './common/trace.js';
import { Backups } from './database/backup.js';
import { Database } from './database/database.js';
import { addStorageGauges, createDatabaseMetrics } from './database/database-metrics.js';
import { createEngine } from './engine/choose-engine.js';
import { type Config, isLoopback } from './platform/config.js';
import { LogDestination } from './platform/log-destination.js';
import { formatLogLine } from './platform/log-text.js';
import { createMetrics, type Metrics } from './platform/metrics.js';
import { createThreadPool, type ThreadPool } from './platform/pool.js';
import { createApp, stopApp } from './server/app.js';
import { Authenticator } from './server/auth/authenticator.js';
import { openSecurity, type Security } from './server/auth/security.js';
import type { CorsSettings } from './server/cors.js';
import { ControlSocket } from './server/transport/control-socket.js';
import { diskBytesOf, diskSpace } from './storage/disk.js';
import { openLmdbStore } from './storage/lmdb-store.js';
import { STORE_FILE } from './storage/store-format.js';

export interface RunningServer {
  /** The base URL, `http://127.0.0.1:8484`, or https with TLS. */
  readonly url: string;
  readonly engine: { readonly name: string; readonly reason: string };
  /** Resolves when every collection has been loaded or has failed to load. */
  readonly loaded: Promise<void>;
  /** Resolves when the disk has failed: the server is then to be stopped and the process to end. */
  readonly failed: Promise<SagittaError>;
  /** Finishes the requests in progress, within the configured time, and closes everything. */
  stop(): Promise<void>;
}

/** Beside the compiled sources. */
const CONSOLE_FOLDER = fileURLToPath(new URL('../console', import.meta.url));

/** Shared by all servers of the process: they flush when the process exits. */
const STDERR = {
  json: new LogDestination(2),
  text: new LogDestination(2, formatLogLine),
} as const;

/** Closes what was opened so far, in reverse order; `isFailed`: the service has not started. */
type Closers = ((isFailed: boolean) => void | Promise<void>)[];

/**
 * Throws if the service cannot start: the data directory is locked or was written by a newer version,
 * the port is in use, or the requested engine does not work on this machine.
 */
export async function startServer(config: Config): Promise<RunningServer> {
  const startedAtMs = performance.now();
  const elapsedMs = () => Math.round(performance.now() - startedAtMs);
  const logger = createLogger(config);
  if (config.ignoredVariables.length > 0) {
    logger.info(
      { variables: config.ignoredVariables },
      'ignored variables that Kubernetes sets for a Service; they are not settings',
    );
  }
  const closers: Closers = [];
  const closeAll = async (isFailed: boolean) => {
    for (const close of closers.splice(0).reverse()) await close(isFailed);
  };
  try {
    const security = await openSecurity(config, { clock: systemClock, logger });
    closers.push(() => security.close());
    const opened = await openDatabase(config, logger, closers);
    const { url, isCredentialRequired } = await listen(config, {
      ...opened,
      security,
      logger,
      closers,
    });
    logger.info(
      {
        url,
        credentials: isCredentialRequired
          ? 'required'
          : 'none configured: every request has full access',
        milliseconds: elapsedMs(),
      },
      'listening',
    );
    const { loaded } = opened.database;
    loaded.then(() => logger.info({ milliseconds: elapsedMs() }, 'ready'));
    return {
      url,
      engine: opened.engine,
      loaded,
      failed: opened.failed,
      async stop() {
        logger.info({}, 'stopping');
        await closeAll(false);
        logger.info({}, 'stopped');
      },
    };
  } catch (error) {
    await closeAll(true);
    throw error;
  }
}

interface OpenedDatabase {
  readonly database: Database;
  readonly backups: Backups;
  readonly failed: Promise<SagittaError>;
  readonly pool: ThreadPool;
  readonly engine: { readonly name: string; readonly reason: string };
  readonly metrics: Metrics;
}

/** Opens the store, the worker pool, the engine and the database on them. */
async function openDatabase(
  config: Config,
  logger: PinoLogger,
  closers: Closers,
): Promise<OpenedDatabase> {
  const metrics = createMetrics();
  let onFailure!: (error: SagittaError) => void;
  const failed = new Promise<SagittaError>((resolve) => {
    onFailure = resolve;
  });
  failed.then((error) =>
    logger.fatal(
      { err: error.cause, directory: config.dataDir },
      'the data file could not be written; the service ends, since what is on the disk is not known',
    ),
  );
  const store = await openLmdbStore({
    directory: config.dataDir,
    mapping: config.values,
    warn: (message) => logger.warn({}, message),
    onFailure,
  });
  closers.push((isFailed) => (isFailed ? store.closeAndRemoveIfNew() : store.close()));
  const pool = createThreadPool({
    workerUrl: new URL('./worker.js', import.meta.url),
    waitingMax: config.limits.queuedTasksMax,
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
    observer: createDatabaseMetrics(metrics),
  });
  closers.push(() => database.close());
  metrics.addInfo('sagitta_build_info', 'Versions and engine, as labels.', {
    version: packageVersion(),
    node: process.version,
    engine: engine.name,
  });
  metrics.addGauge(
    'sagitta_pool_tasks_waiting',
    'Tasks that wait for a worker thread.',
    () => pool.waitingCount,
  );
  for (const { name, help, read } of gauges) metrics.addGauge(name, help, read);
  addStorageGauges(metrics, database);
  addDiskGauges(metrics, config.dataDir);
  const backups = new Backups({ store, directory: config.backupDir, logger });
  return { database, backups, failed, pool, engine: { name: engine.name, reason }, metrics };
}

function addDiskGauges(metrics: Metrics, directory: string): void {
  metrics.addGauge(
    'sagitta_disk_free_bytes',
    'Free space of the disk with the data directory.',
    () => diskSpace(directory).freeBytes,
  );
  metrics.addGauge(
    'sagitta_disk_total_bytes',
    'Size of the disk with the data directory.',
    () => diskSpace(directory).totalBytes,
  );
  metrics.addGauge(
    'sagitta_store_bytes',
    'Disk space of the store file, which has the catalogue and the logs.',
    () => diskBytesOf(join(directory, STORE_FILE)),
  );
}

/** Builds the application and listens, on the control socket and on the configured address. */
async function listen(
  config: Config,
  parts: OpenedDatabase & {
    readonly security: Security;
    readonly logger: PinoLogger;
    readonly closers: Closers;
  },
): Promise<{ url: string; isCredentialRequired: boolean }> {
  const { database, backups, pool, metrics, security, logger, closers } = parts;
  const tracer = await openTracer(config, logger);
  closers.push(() => tracer?.close());
  const control = new ControlSocket(config.dataDir);
  closers.push(() => control.close());
  const authenticator = new Authenticator({
    apiKeys: database.apiKeys,
    tokens: security.tokens,
    certificates: security.certificates,
    isOperator: control.isOperator,
  });
  requireCredentials(config, authenticator);
  const app = await createApp({
    database,
    backups,
    pool,
    limits: config.limits,
    memoryBytes: config.memory,
    defaultCollection: config.defaultCollection,
    logger,
    metrics,
    tracer,
    slowQueryMs: config.slowQueryMs,
    authenticator,
    tls: security.tls,
    trustedProxies: config.trustedProxies,
    cors: corsOf(config),
    hostNames: config.hostNames,
    consoleFolder: config.isConsoleServed ? CONSOLE_FOLDER : null,
    embedding: {
      endpoints: config.embedding,
      timeoutMs: config.embeddingTimeoutMs,
      attemptsMax: config.embeddingAttempts,
      batchTextsMax: config.embeddingBatchTexts,
    },
  });
  closers.push(() => stopApp(app, { deadlineMs: config.shutdownMs }));
  await control.listen((request, response) => {
    // Nothing is written before the start has succeeded: a new directory is removed if it fails.
    if (app.server.listening) app.routing(request, response);
    else request.destroy();
  });
  closers.push(() => control.stopListening());
  await app.listen({ host: config.host, port: config.port }).catch((error: unknown) => {
    throw explainListenError(error, config);
  });
  return {
    url: urlOf(app.server.address() as AddressInfo, security.tls !== null),
    isCredentialRequired: authenticator.isRequired,
  };
}

function corsOf(config: Config): CorsSettings | null {
  if (config.corsOrigins.length === 0) return null;
  return {
    origins: config.corsOrigins,
    methods: config.corsMethods,
    headers: config.corsHeaders,
    exposedHeaders: config.corsExposedHeaders,
    maxAgeSeconds: config.corsMaxAgeSeconds,
  };
}

/**
 * Without credentials, only this machine may reach the service, and no page but those that the operator
 * names. Throws `configuration_invalid`.
 */
function requireCredentials(config: Config, authenticator: Authenticator): void {
  const { host, insecure, dataDir, corsOrigins } = config;
  if (insecure || authenticator.isRequired) return;
  if (isLoopback(host) && !corsOrigins.includes('*')) return;
  const found = isLoopback(host)
    ? 'SAGITTA_CORS_ORIGINS is "*", but no credentials are configured, so any web page that is open on this machine'
    : `SAGITTA_HOST is ${JSON.stringify(host)}, but no credentials are configured, so anyone on the network`;
  throw new SagittaError(
    'configuration_invalid',
    `${found} would have full access. Create the first API key with: sagitta keys create --data-dir ${quoteForShell(dataDir)} --owner me --scope admin. Alternatively configure access tokens (SAGITTA_JWKS) or client certificates (SAGITTA_TLS_CLIENT_CA); SAGITTA_INSECURE=yes allows access without credentials.`,
  );
}

function quoteForShell(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Loads OpenTelemetry, which takes 5 MB, only if an endpoint is configured. */
async function openTracer({ tracesUrl }: Config, logger: PinoLogger): Promise<Tracer | null> {
  if (tracesUrl === null) return null;
  const { createTracer } = await import('./platform/tracing.js');
  logger.info({ url: withoutPassword(tracesUrl) }, 'sending traces');
  return createTracer({ url: tracesUrl, version: packageVersion(), logger });
}

function withoutPassword(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

/** Logs to stderr: stdout is for the output of commands. */
function createLogger({ logLevel, logFormat }: Config): PinoLogger {
  const automatic = process.stderr.isTTY ? 'text' : 'json';
  const destination = STDERR[logFormat === 'auto' ? automatic : logFormat];
  return pino({ level: logLevel, base: null }, destination);
}

function urlOf({ address, family, port }: AddressInfo, isPrivate: boolean): string {
  return `${isPrivate ? 'https' : 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

function explainListenError(error: unknown, { host, port }: Config): unknown {
  const { code } = error as NodeJS.ErrnoException;
  const found = {
    EADDRINUSE: 'the address is already in use',
    EACCES: 'permission denied',
    EADDRNOTAVAIL: 'this machine does not have the address',
    ENOTFOUND: 'the name cannot be resolved',
  }[code ?? ''];
  if (found === undefined) return error;
  return new SagittaError(
    'configuration_invalid',
    `Cannot listen on ${host}:${port}: ${found}. Set SAGITTA_HOST and SAGITTA_PORT to a free address.`,
    { cause: error },
  );
}

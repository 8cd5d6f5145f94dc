// The composition root: starts the service from a configuration. Components are opened in dependency order and closed
// in reverse; the listener comes last, so that every client that can connect gets a reply. A node of a cluster may wait
// for other services before that, and says so on its address meanwhile.

import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { pathToFileURL } from 'node:url';
import pino, { type Logger as PinoLogger } from 'pino';
import type { SealedBlobs } from './cluster/blobs/sealed-blobs.js';
import type { ClusterNode } from './cluster/nodes/cluster-node.js';
import type { NatsDurability } from './cluster/service/nats-durability.js';
import type { NatsService } from './cluster/service/nats-service.js';
import { systemClock } from './common/clock.js';
import { assert, SagittaError } from './common/errors.js';
import { packageFile, packageVersion, programFile } from './common/package-files.js';
import type { Preparation } from './common/preparation.js';
import type { ServiceProblem } from './common/problems.js';
import type { Tracer } from './common/trace.js';
import { untilAvailable } from './common/until-available.js';
import { unlessAborted } from './common/when-aborted.js';
import { Backups } from './database/admin/backup.js';
import { Database } from './database/database.js';
import { addStorageGauges, createDatabaseMetrics } from './database/database-metrics.js';
import { createEngine } from './engine/choose-engine.js';
import { type Config, isLoopback } from './platform/config.js';
import { LogDestination } from './platform/log-destination.js';
import { formatLogLine } from './platform/log-text.js';
import { createMetrics, type Metrics } from './platform/metrics.js';
import { NodeKeys } from './platform/node-keys.js';
import { OPEN_FILES_MIN, openFilesMax } from './platform/open-files.js';
import { createThreadPool, type ThreadPool } from './platform/pool.js';
import { Watchdog } from './platform/watchdog.js';
import { createApp, stopApp } from './server/app.js';
import { Authenticator } from './server/auth/authenticator.js';
import { openSecurity, type Security } from './server/auth/security.js';
import { PeerSearches } from './server/cluster/peer-searches.js';
import { RequestForwarder } from './server/cluster/request-forwarder.js';
import { ControlSocket } from './server/transport/control-socket.js';
import { StartingListener } from './server/transport/starting-listener.js';
import { DiskWatch } from './storage/disk-watch.js';
import { openStore } from './storage/open-store.js';
import type { DiskStore } from './storage/store.js';

/** Loads the configuration for `startServer` from environment variables and options. */
export { loadConfig } from './platform/config.js';

export interface RunningServer {
  /** The base URL, such as `http://127.0.0.1:8484`; https with TLS. */
  readonly url: string;
  readonly engine: { readonly name: string; readonly reason: string };
  /** Resolves when every collection has been loaded or has failed to load. */
  readonly loaded: Promise<void>;
  /** Resolves if the disk fails: the server must then be stopped, and the process must exit. */
  readonly failed: Promise<SagittaError>;
  /** Finishes requests in progress within the configured time and closes everything. */
  stop(): Promise<void>;
}

const CONSOLE_FOLDER = packageFile('dist/console');

/** Shared by all servers of the process, and flushed when the process exits. */
const STDERR = {
  json: new LogDestination(2),
  text: new LogDestination(2, formatLogLine),
} as const;

/** Close what has been opened so far, in reverse order. `isFailed` means that the service has not started. */
type Closers = ((isFailed: boolean) => void | Promise<void>)[];

export interface StartOptions {
  readonly preparation?: Preparation | null;
  /** Ends the start, which then closes what it opened and rejects with the reason. */
  readonly stopping?: AbortSignal;
}

/**
 * Throws if the service cannot start: the data directory is locked or has another format, the port is in use, or the
 * requested engine does not work on this machine.
 */
export async function startServer(
  config: Config,
  { preparation = null, stopping }: StartOptions = {},
): Promise<RunningServer> {
  const startedAtMs = performance.now();
  const elapsedMs = () => Math.round(performance.now() - startedAtMs);
  const logger = createLogger(config);
  if (config.ignoredVariables.length > 0) {
    logger.info(
      { variables: config.ignoredVariables },
      'ignored variables that Kubernetes sets for a Service; they are not settings',
    );
  }
  const filesMax = openFilesMax();
  if (filesMax < config.limits.connectionsMax + OPEN_FILES_MIN) {
    logger.warn(
      { open_files_max: filesMax, connections_max: config.limits.connectionsMax },
      'the process may open fewer files than the connection limit requires, so some connections may fail; raise the limit of open files (ulimit -n), or lower SAGITTA_CONNECTIONS_MAX',
    );
  }
  const closers: Closers = [];
  const closeAll = async (isFailed: boolean) => {
    for (const close of closers.splice(0).reverse()) await close(isFailed);
  };
  try {
    const security = await openSecurity(config, { clock: systemClock, logger });
    closers.push(() => security.close());
    const starting = config.cluster === null ? null : new StartingListener(security.tls);
    closers.push(() => starting?.close());
    const port = await starting?.listen(config).catch((error: unknown) => {
      throw explainListenError(error, config);
    });
    // A node may wait for other services, and must count as alive meanwhile.
    let watchdog = starting === null ? null : await startWatchdog(config, { logger, closers });
    const opened = await openDatabase(config, { logger, closers, stopping });
    stopping?.throwIfAborted();
    await starting?.close();
    const { url, address, isCredentialRequired } = await listen(
      { ...config, port: port ?? config.port },
      { ...opened, preparation, security, logger, closers },
    );
    watchdog ??= await startWatchdog(config, { logger, closers });
    watchdog.ready();
    logger.info(
      {
        url,
        address,
        ...(watchdog.port !== null && { liveness_port: watchdog.port }),
        credentials: isCredentialRequired
          ? 'required'
          : 'none configured: every request has full access',
        milliseconds: elapsedMs(),
      },
      'listening',
    );
    const { database, node } = opened;
    const { loaded } = database;
    const ended = watchdog;
    node?.serve(config.clusterUrl ?? url);
    return {
      url,
      engine: opened.engine,
      loaded,
      failed: opened.failed,
      async stop() {
        logger.info({}, 'stopping');
        ended.stopping();
        await node?.leave(LEAVE_MS_MAX);
        await closeAll(false);
        logger.info({}, 'stopped');
      },
    };
  } catch (error) {
    await closeAll(true);
    if (stopping?.aborted) logger.info({}, 'stopped during the start');
    throw error;
  }
}

interface StartParts {
  readonly logger: PinoLogger;
  readonly closers: Closers;
  readonly stopping: AbortSignal | undefined;
}

interface OpenedDatabase {
  readonly database: Database;
  /** This process as a node of a cluster; null if it runs alone. */
  readonly node: ClusterNode | null;
  readonly forwarder: RequestForwarder | null;
  readonly backups: Backups;
  readonly failed: Promise<SagittaError>;
  readonly pool: ThreadPool;
  readonly engine: { readonly name: string; readonly reason: string };
  readonly metrics: Metrics;
  readonly problems: () => readonly ServiceProblem[];
}

/** Opens the store, the worker pool, the engine and the database. */
async function openDatabase(
  config: Config,
  { logger, closers, stopping }: StartParts,
): Promise<OpenedDatabase> {
  const metrics = createMetrics();
  let onFailure!: (error: SagittaError) => void;
  const failed = new Promise<SagittaError>((resolve) => {
    onFailure = resolve;
  });
  failed.then((error) =>
    logger.fatal(
      { err: error.cause, directory: config.dataDir },
      'the journal could not be written; the service is stopping, because it is unknown what is on disk',
    ),
  );
  const pool = createThreadPool({
    waitingMax: config.limits.queuedTasksMax,
    ...(config.threads === null ? {} : { threadCount: config.threads }),
  });
  closers.push(() => pool.close());
  // Starts before the store is opened, because GPU drivers respond slowly.
  const engineChoice = createEngine({
    requested: config.engine,
    simdTarget: config.simd === 'auto' ? null : config.simd,
    deviceMemory: config.deviceMemory,
    pool,
    logger,
  });
  const closing = engineChoice.then(
    (chosen) => () => chosen.engine.close(),
    () => () => {},
  );
  closers.push(async () => (await closing)());
  const keys = new NodeKeys(config.clusterSecret ?? [], config.clusterName);
  const blobs = await openBlobStore(config, keys);
  const store = await openStore({
    directory: config.dataDir,
    mapping: config.values,
    ...(await blocksOf(config, metrics)),
    warn: (message) => logger.warn({}, message),
    onFailure,
    stopping,
  });
  closers.push((isFailed) => (isFailed ? store.closeAndRemoveIfNew() : store.close()));
  const node =
    blobs === null
      ? null
      : await joinCluster(config, { store, blobs, keys, logger, closers, stopping });
  const { engine, reason, readings } = await engineChoice;
  stopping?.throwIfAborted();
  logger.info({ engine: engine.name, reason }, 'engine chosen');
  const forwarder = node && new RequestForwarder({ cluster: node, keys, metrics, logger });
  closers.push(() => forwarder?.close());
  node?.health.addProblems(() => forwarder?.peers.problems ?? []);
  const valuesMin = config.clusterScatterValues;
  const peers = forwarder && new PeerSearches({ forwarder, metrics, valuesMin });
  const database = await Database.open({
    store,
    ...(node && { logs: node.logs }),
    ...(peers && { peers }),
    ...(node && { cursorKey: (stored: Uint8Array) => keys.sign('cursors', stored) }),
    engine,
    engineReason: reason,
    pool,
    limits: config.limits,
    clock: systemClock,
    logger,
    observer: createDatabaseMetrics(metrics),
  });
  closers.push(() => database.close());
  if (node !== null) {
    await unlessAborted(database.loaded, stopping);
    // Runs before the database is closed, so that the node stops applying logs to it.
    closers.push(() => node.close());
    await unlessAborted(node.attach(database), stopping);
    const { addClusterGauges } = await import('./cluster/nodes/cluster-metrics.js');
    addClusterGauges(metrics, node, store);
  }
  addBuildInfo(metrics, engine.name);
  metrics.addReading('sagitta_pool_tasks_waiting', () => pool.waitingCount);
  for (const { name, read } of readings) metrics.addReading(name, read);
  addStorageGauges(metrics, database);
  const diskWatch = await DiskWatch.open(config.dataDir, { logger });
  closers.push(() => diskWatch.close());
  addDiskGauges(metrics, diskWatch, store);
  node?.health.addProblems(() => diskWatch.problems);
  const problems = () => node?.health.problems ?? diskWatch.problems;
  const backups = new Backups({ store, directory: config.backupDir, logger });
  const chosen = { name: engine.name, reason };
  return { database, node, forwarder, backups, failed, pool, engine: chosen, metrics, problems };
}

/** The files shared by the nodes of a cluster; null if the process runs alone. */
async function openBlobStore(
  { cluster, blobStore }: Config,
  keys: NodeKeys,
): Promise<SealedBlobs | null> {
  if (cluster === null || blobStore === null) return null;
  const { openBlobs } = await import('./cluster/blobs/open-blobs.js');
  const { SealedBlobs: Sealed } = await import('./cluster/blobs/sealed-blobs.js');
  return new Sealed(await openBlobs(blobStore), keys);
}

/** Where the store gets the blocks of files that it keeps in part. */
async function blocksOf(
  { cluster, blobStore, clusterFileCopies, clusterCacheBytes }: Config,
  metrics: Metrics,
) {
  if (cluster === null || blobStore === null || clusterFileCopies === null) return {};
  const module = pathToFileURL(programFile('cluster/blobs/block-source.js')).href;
  const { countFetchedBlocks } = await import('./cluster/nodes/cluster-metrics.js');
  return {
    blocks: { module, data: blobStore },
    blockCacheBytes: clusterCacheBytes,
    onFetched: countFetchedBlocks(metrics),
  };
}

interface JoinOptions extends StartParts {
  readonly store: DiskStore;
  readonly blobs: SealedBlobs;
  readonly keys: NodeKeys;
}

/** Brings the store up to date with the cluster, whose packages are loaded only here. */
async function joinCluster(config: Config, parts: JoinOptions): Promise<ClusterNode> {
  const { NatsService: Service, API_LEVEL_MIN } = await import('./cluster/service/nats-service.js');
  const { natsLoginOf } = await import('./cluster/service/nats-login.js');
  const { NatsDurability: Durability } = await import('./cluster/service/nats-durability.js');
  const { logger, closers } = parts;
  const { cluster, clusterName, clusterReplicas: replicas } = config;
  assert(cluster !== null, 'the configuration names NATS servers');
  if (config.clusterSecret === null) {
    logger.warn(
      {},
      'the nodes share no secret (SAGITTA_CLUSTER_SECRET): every process on this machine can act in their name',
    );
  }
  const waiting = { logger, stopping: parts.stopping };
  const service = await untilAvailable(
    () =>
      Service.connect({
        urls: cluster,
        login: natsLoginOf(config),
        isInsecure: config.clusterInsecure,
        cluster: clusterName,
        replicas,
        logger,
      }),
    waiting,
  );
  closers.push(() => service.close());
  const durability = await untilAvailable(
    () =>
      Durability.open({
        monitors: config.clusterMonitors,
        replicas,
        apiLevelMin: API_LEVEL_MIN,
        connectedServerId: () => service.serverId,
        logger,
      }),
    waiting,
  );
  closers.push(() => durability.close());
  const node = await untilAvailable(
    () => service.whileItAnswers(() => openNode(service, durability, config, parts)),
    waiting,
  );
  closers.push(() => node.close());
  const { store } = parts;
  logger.info({ node: node.self.node }, 'joining the cluster');
  const catchingUp = service.whileItAnswers(() =>
    node.catchUp({
      incarnationsIn: () => Database.incarnationsIn(store),
      isFounded: () => Database.secretIn(store) !== null,
      foundation: Database.foundation,
    }),
  );
  // Closing the node ends its work.
  await unlessAborted(catchingUp, parts.stopping);
  return node;
}

async function openNode(
  service: NatsService,
  durability: NatsDurability,
  config: Config,
  { store, blobs, keys, logger }: JoinOptions,
): Promise<ClusterNode> {
  const { ClusterNode: Node } = await import('./cluster/nodes/cluster-node.js');
  const { SealedService } = await import('./cluster/service/sealed-service.js');
  const { clusterNode } = config;
  await service.requireReplicas();
  return await Node.open({
    service: new SealedService(service, keys, logger),
    node: clusterNode ?? hostname(),
    zone: config.clusterZone ?? '',
    version: packageVersion(),
    store,
    blobs,
    layout: Database.storeLayout,
    snapshotBytes: config.clusterSnapshotBytes,
    fileCopies: config.clusterFileCopies,
    timing: { silentMsMax: config.clusterSilentMs, replaceMs: config.clusterReplaceMs },
    durability: () => durability.current,
    ...(config.clusterFound &&
      Database.secretIn(store) !== null && {
        founding: { collections: Database.collectionsIn(store) },
      }),
    logger,
  });
}

/** How long `stop` waits for another node to take over. */
const LEAVE_MS_MAX = 5_000;

function addBuildInfo(metrics: Metrics, engine: string): void {
  const version = packageVersion();
  metrics.addInfo('sagitta_build_info', { version, node: process.version, engine });
}

function addDiskGauges(metrics: Metrics, diskWatch: DiskWatch, store: DiskStore): void {
  metrics.addReading('sagitta_disk_free_bytes', () => diskWatch.space.freeBytes);
  metrics.addReading('sagitta_disk_total_bytes', () => diskWatch.space.totalBytes);
  metrics.addReading('sagitta_disk_silent_seconds', () => diskWatch.silentMs / 1000);
  metrics.addReading('sagitta_store_bytes', () => store.storedBytes);
}

/** Builds the application and listens on the control socket and on the configured address. */
async function listen(
  config: Config,
  parts: OpenedDatabase & {
    readonly preparation: Preparation | null;
    readonly security: Security;
    readonly logger: PinoLogger;
    readonly closers: Closers;
  },
): Promise<{ url: string; address: string; isCredentialRequired: boolean }> {
  const { database, forwarder, backups, pool, metrics, security, logger, closers } = parts;
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
    forwarder,
    problems: parts.problems,
    preparation: parts.preparation,
    tls: security.tls,
    trustedProxies: config.trustedProxies,
    cors: config.corsOrigins.length === 0 ? null : config,
    hostNames: config.hostNames,
    consoleFolder: config.isConsoleServed ? CONSOLE_FOLDER : null,
    embedding: config,
  });
  closers.push(() => stopApp(app, { deadlineMs: config.shutdownMs }));
  await control.listen((request, response) => {
    // Nothing may be written until the start has succeeded, because a new directory is removed if it fails.
    if (app.server.listening) app.routing(request, response);
    else request.destroy();
  });
  closers.push(() => control.stopListening());
  await app.listen({ host: config.host, port: config.port }).catch((error: unknown) => {
    throw explainListenError(error, config);
  });
  const address = app.server.address() as AddressInfo;
  return {
    url: urlOf(address, { tls: security.tls, hostNames: config.hostNames }),
    address: address.address,
    isCredentialRequired: authenticator.isRequired,
  };
}

async function startWatchdog(
  config: Config,
  { logger, closers }: Pick<StartParts, 'logger' | 'closers'>,
): Promise<Watchdog> {
  const watchdog = await Watchdog.start({
    config,
    logFormat: logger.isLevelEnabled('warn') ? logFormatOf(config) : null,
    onFailure: (error) => logger.warn({ err: error }, 'the watchdog ended; the service runs on'),
  }).catch((error: unknown) => {
    throw explainListenError(error, config, 'livenessPort');
  });
  // Answers until everything else is closed.
  closers.unshift(() => watchdog.close());
  return watchdog;
}

/**
 * Without credentials, only this machine may reach the service, and only web pages that the operator names may use it.
 * Throws `configuration_invalid`.
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

/** Logs to stderr, as stdout is for the output of commands. */
function createLogger(config: Config): PinoLogger {
  return pino({ level: config.logLevel, base: null }, STDERR[logFormatOf(config)]);
}

function logFormatOf({ logFormat }: Config): 'text' | 'json' {
  if (logFormat !== 'auto') return logFormat;
  return process.stderr.isTTY ? 'text' : 'json';
}

const WILDCARD_ADDRESSES = ['0.0.0.0', '::'];

/** Returns a URL that a browser on this machine can open, since a wildcard address cannot be opened itself. */
function urlOf({ address, family, port }: AddressInfo, { tls, hostNames }: UrlParts): string {
  let host = family === 'IPv6' ? `[${address}]` : address;
  if (WILDCARD_ADDRESSES.includes(address)) host = hostNames[0] ?? 'localhost';
  return `${tls === null ? 'http' : 'https'}://${host}:${port}`;
}

interface UrlParts {
  readonly tls: Security['tls'];
  /** From the configuration. Certificates most likely contain the first one. */
  readonly hostNames: readonly string[];
}

function explainListenError(
  error: unknown,
  config: Config,
  setting: 'port' | 'livenessPort' = 'port',
): unknown {
  const { host, [setting]: port } = config;
  const name = setting === 'port' ? 'SAGITTA_PORT' : 'SAGITTA_LIVENESS_PORT';
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
    `Cannot listen on ${host}:${port}: ${found}. Set SAGITTA_HOST and ${name} to a free address.`,
    { cause: error },
  );
}

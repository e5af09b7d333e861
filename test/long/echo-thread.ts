/**
 * A thread of handover-under-load.test.ts: accepts upgrades and echoes. Node accepts one connection in each turn of an event loop, so
 * on the loop of the test's clients, hundreds of WebSockets would wait for this server until the grace period is over.
 */
import type { AddressInfo } from 'node:net';
import { parentPort } from 'node:worker_threads';
import { echoServer } from '../cli/handover-load.ts';

const server = await echoServer(2048);
parentPort!.postMessage((server.address() as AddressInfo).port);

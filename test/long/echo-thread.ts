/**
 * A thread of handover-under-load.test.ts that accepts upgrades and echoes messages. It has its own event loop, because Node
 * accepts one connection per turn: on the event loop of the test's clients, hundreds of WebSockets would wait until the grace
 * period is over.
 */
import type { AddressInfo } from 'node:net';
import { parentPort } from 'node:worker_threads';
import { echoServer } from '../cli/handover-load.ts';

const server = await echoServer(2048);
parentPort!.postMessage((server.address() as AddressInfo).port);

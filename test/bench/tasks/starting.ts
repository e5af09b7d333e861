/**
 * Bench rows for the cost of a server without load: its start and its memory. A row for Node alone shows the part that no change
 * to svc can reduce.
 */
import { caddyConfiguration, svcConfiguration } from './configurations.ts';
import type { StartContender, StartTask } from './task.ts';

const SVC: StartContender = {
	server: 'svc',
	configuration: (port, threads) =>
		svcConfiguration(`http://127.0.0.1:${port} {\n\trespond "Hello, world!"\n}\n`, threads, '\tadmin off\n'),
};

const CONTENDERS: readonly StartContender[] = [
	SVC,
	{
		server: 'caddy',
		configuration: port => caddyConfiguration(`http://127.0.0.1:${port} {\n\trespond "Hello, world!"\n}\n`),
	},
	{
		label: 'node alone',
		server: 'node',
		configuration: port =>
			`require('node:net').createServer(s => s.end('Hello, world!')).listen(${port}, '127.0.0.1');`,
	},
];

export const START_TASKS: readonly StartTask[] = [
	{ name: 'start-up', start: 'time', contenders: CONTENDERS, bounds: { caddy: 2 } },
	{ name: 'start-up: processor time', start: 'processor time', contenders: CONTENDERS, bounds: { caddy: 3 } },
	{ name: 'start-up: validate', start: 'validate', contenders: CONTENDERS, bounds: { caddy: 2 } },
	{ name: 'start-up: memory with one thread', start: 'memory', contenders: CONTENDERS, bounds: { caddy: 2 } },
	{
		name: 'start-up: memory per further thread',
		start: 'memory per further thread',
		contenders: [SVC],
		limit: 12,
	},
];

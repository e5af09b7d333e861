/** Servers for tests of handovers. */
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { freePorts, rawExchange, type ServerProcess, serve, temporaryFolder } from '../harness.ts';

export interface RunningServer {
	readonly server: ServerProcess;
	readonly folder: string;
	readonly file: string;
	readonly ports: readonly number[];
	/** Loads a configuration. Returns the status and body of the response. */
	load(sites: string, query?: string): Promise<{ status: number; body: { readonly [name: string]: unknown } }>;
}

/**
 * Starts a server with an Admin API and the given sites. `ports[0]` is the first site's port. The server has one thread, because
 * processes with more threads take longer to start, unless `options` sets another number.
 */
export async function withServer(
	sites: (ports: readonly number[]) => string,
	test: (running: RunningServer) => Promise<void>,
	options = '',
): Promise<void> {
	const folder = temporaryFolder();
	const ports = await freePorts(6);
	const socketPath = path.join(folder, 'admin.sock');
	const file = path.join(folder, 'Configfile');
	const threads = /^\tthreads /m.test(options) ? '' : '\tthreads 1\n';
	const global = `{\n${threads}\tadmin unix/${socketPath}\n\tskip_install_trust\n\tauto_https disable_redirects\n\tstorage file_system ${folder}/store\n${options}}\n`;
	writeFileSync(file, `${global}${sites(ports)}`);
	const server = await serve([file], ports[0]!, { env: { XDG_STATE_HOME: folder } });
	const load: RunningServer['load'] = (wanted, query = '?handover') => {
		writeFileSync(file, `${global}${wanted}`);
		return new Promise((resolve, reject) => {
			const headers = { host: 'svc', connection: 'close', 'content-type': 'text/configfile' };
			const clientRequest = request({ socketPath, method: 'POST', path: `/load${query}`, headers }, response => {
				let body = '';
				response.setEncoding('utf8').on('data', chunk => {
					body += chunk;
				});
				response.on('end', () => resolve({ status: response.statusCode!, body: JSON.parse(body) }));
			});
			clientRequest.on('error', reject);
			clientRequest.end(`${global}${wanted}`);
		});
	};
	try {
		await test({ server, folder, file, ports, load });
	} finally {
		await server.stop();
	}
}

/** Returns the processes whose working directory or command line names the folder. */
export function processesOf(folder: string): number[] {
	return readdirSync('/proc')
		.filter(name => /^\d+$/.test(name))
		.filter(pid => {
			try {
				return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(folder);
			} catch {
				return false;
			}
		})
		.map(Number);
}

/** Returns the configuration of a site that answers with the given text. */
export const siteText = (port: number, text: string): string => `http://127.0.0.1:${port} {\n\trespond "${text}"\n}\n`;

/** Requests `/` on a new connection and returns the body. On an open connection, the old process might answer once more. */
export async function bodyOf(port: number): Promise<string> {
	const answer = await rawExchange(port, 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
	return answer.split('\r\n\r\n')[1] ?? '';
}

/** Returns the PID of the process that has taken over. */
export function pidOf({ body }: Awaited<ReturnType<RunningServer['load']>>): number {
	return (body.handover as { readonly pid: number }).pid;
}

/** Reports whether connections to a port are refused. */
export async function isRefused(port: number): Promise<boolean> {
	return await rawExchange(port, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n').then(
		() => false,
		error => error.code === 'ECONNREFUSED',
	);
}

/** Resolves to the exit status of the first process, which exits after the last of its successors. */
export async function exitStatus({ child }: RunningServer['server']): Promise<number | null> {
	if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
	return child.exitCode;
}

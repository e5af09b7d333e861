/** nginx as a peer: a process with the configuration of a test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { waitForPort } from '../harness.ts';

export interface NginxProcess {
	/** Resolves when the process has ended. */
	stop(): Promise<void>;
}

/**
 * Starts nginx in a folder, which becomes its prefix. Resolves once nginx listens on `port`.
 * @param http The contents of the block `http`.
 */
export async function startNginx(folder: string, port: number, http: string): Promise<NginxProcess> {
	mkdirSync(path.join(folder, 'logs'), { recursive: true });
	writeFileSync(path.join(folder, 'nginx.conf'), nginxConfiguration(http));
	const nginx = spawn('nginx', ['-p', folder, '-e', 'error.log', '-c', 'nginx.conf'], { stdio: 'ignore' });
	const whenEnded = once(nginx, 'close');
	const stop = async (): Promise<void> => {
		nginx.kill('SIGTERM');
		await whenEnded;
	};
	await waitForPort(port).catch(async error => {
		await stop();
		throw error;
	});
	return { stop };
}

/** Returns a configuration with which nginx writes only below its prefix. */
export function nginxConfiguration(http: string): string {
	return `daemon off; worker_processes 1; pid nginx.pid; user root;
events { }
http {
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	${http}
}
`;
}

/** Bench rows of HTTP/3. Of the other servers, as packaged by the Linux distribution, only Caddy supports HTTP/3. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { temporaryFolder } from '../../harness.ts';
import { backendCertificate } from './backend-certificate.ts';
import { caddyConfiguration } from './configurations.ts';
import type { Contender, LoadTask } from './task.ts';

const LARGE_BYTES = 2 ** 20;
let folder: string | undefined;

/** Returns the folder that contains the large file. The first call creates it. */
function fileFolder(): string {
	if (folder === undefined) {
		folder = temporaryFolder();
		writeFileSync(path.join(folder, 'large'), Buffer.alloc(LARGE_BYTES, 'x'));
	}
	return folder;
}

/** The servers in all rows of HTTP/3. */
export const HTTP3_CONTENDERS: readonly Contender[] = [
	{
		server: 'svc',
		configuration: port => {
			const { certificate, key } = backendCertificate();
			const options = 'threads 1\n\tauto_https off\n\tdefault_sni localhost';
			return `{\n\t${options}\n}\nhttps://localhost:${port} {\n\ttls ${certificate} ${key}\n\thandle /large {\n\t\troot ${fileFolder()}\n\t\tfile_server\n\t}\n\trespond "Hello, world!\n"\n}\n`;
		},
	},
	{
		server: 'caddy',
		configuration: port => {
			const { certificate, key } = backendCertificate();
			const site = `https://localhost:${port} {\n\ttls ${certificate} ${key}\n\thandle /large {\n\t\troot * ${fileFolder()}\n\t\tfile_server\n\t}\n\thandle {\n\t\trespond "Hello, world!\n"\n\t}\n}\n`;
			return caddyConfiguration(site).replace('{', '{\n\tdefault_sni localhost');
		},
	},
];

const small = { kind: 'http3', path: '/', connections: 8, streams: 10 } as const;

export const HTTP3_TASKS: readonly LoadTask[] = [
	{
		name: 'h3 respond 14 B, 10 streams on each of 8 connections',
		load: small,
		contenders: HTTP3_CONTENDERS,
		bounds: { caddy: 0.5 },
	},
	{
		name: 'h3 respond 14 B, beside 1,000 idle connections',
		load: { ...small, idle: 1000 },
		contenders: HTTP3_CONTENDERS,
		bounds: { caddy: 0.5 },
	},
	{
		name: 'h3 file 1 MB',
		load: { kind: 'http3', path: '/large', connections: 4, streams: 2, bytes: LARGE_BYTES },
		contenders: HTTP3_CONTENDERS,
		bounds: { caddy: 0.9 },
	},
	{
		name: 'h3 handshakes, a connection for each request',
		load: { kind: 'http3', path: '/', connections: 8, streams: 1, handshakes: true },
		contenders: HTTP3_CONTENDERS,
		bounds: { caddy: 1 },
	},
];

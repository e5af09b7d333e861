/** Bench rows of TLS: full and resumed handshakes with a P-256 key, and small responses over HTTP/2 requested as browsers do. */
import { backendCertificate } from './backend-certificate.ts';
import { caddyConfiguration, nginxConfiguration } from './configurations.ts';
import type { Contender, LoadTask } from './task.ts';

const SERVERS: readonly Contender[] = [
	{
		server: 'svc',
		configuration: port => {
			const { certificate, key } = certificateFiles();
			const options = 'threads 1\n\tauto_https off\n\tdefault_sni localhost';
			return `{\n\t${options}\n}\nhttps://localhost:${port} {\n\ttls ${certificate} ${key}\n\trespond "Hello, world!\n"\n}\n`;
		},
	},
	{
		server: 'nginx',
		configuration: port => {
			const { certificate, key } = certificateFiles();
			const secure = `listen 127.0.0.1:${port} ssl http2; ssl_certificate ${certificate}; ssl_certificate_key ${key}; ssl_session_cache shared:s:10m; ssl_protocols TLSv1.2 TLSv1.3`;
			return nginxConfiguration(`${secure}; location / { default_type text/plain; return 200 "Hello, world!\\n"; }`);
		},
	},
	{
		server: 'caddy',
		configuration: port => {
			const { certificate, key } = certificateFiles();
			const site = `https://localhost:${port} {\n\ttls ${certificate} ${key}\n\trespond "Hello, world!\n"\n}\n`;
			return caddyConfiguration(site).replace('{', '{\n\tdefault_sni localhost');
		},
	},
];

/** Contenders that terminate TLS in front of the static backend. */
const PROXIES: readonly Contender[] = [
	{
		server: 'svc',
		configuration: (port, to) => {
			const { certificate, key } = certificateFiles();
			const options = 'threads 1\n\tauto_https off\n\tdefault_sni localhost';
			return `{\n\t${options}\n}\nhttps://localhost:${port} {\n\ttls ${certificate} ${key}\n\treverse_proxy 127.0.0.1:${to.files}\n}\n`;
		},
	},
	{
		server: 'nginx',
		configuration: (port, to) => {
			const { certificate, key } = certificateFiles();
			const secure = `listen 127.0.0.1:${port} ssl; ssl_certificate ${certificate}; ssl_certificate_key ${key}; ssl_protocols TLSv1.2 TLSv1.3`;
			return nginxConfiguration(
				`${secure}; location / { proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection "";
		proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme; }`,
				`upstream b { server 127.0.0.1:${to.files}; keepalive 128; keepalive_requests 1000000000; }`,
			);
		},
	},
	{
		server: 'caddy',
		configuration: (port, to) => {
			const { certificate, key } = certificateFiles();
			const site = `https://localhost:${port} {\n\ttls ${certificate} ${key}\n\treverse_proxy 127.0.0.1:${to.files}\n}\n`;
			return caddyConfiguration(site);
		},
	},
];

// Creates a certificate for each server. This is cheap compared with starting the server.
function certificateFiles(): ReturnType<typeof backendCertificate> {
	return backendCertificate();
}

const handshakes = (name: string, version: string, resumed: boolean): LoadTask => ({
	name: `tls ${name}`,
	load: { kind: 'handshakes', version, resumed },
	contenders: SERVERS,
	bounds: { nginx: resumed ? 1.5 : 1.4 },
});

export const TLS_TASKS: readonly LoadTask[] = [
	handshakes('full handshakes, 1.3', 'tls1_3', false),
	handshakes('full handshakes, 1.2', 'tls1_2', false),
	handshakes('resumed handshakes, 1.2', 'tls1_2', true),
	{
		name: 'tls h2 respond 14 B, 10 streams on each of 16 connections',
		load: { kind: 'streams', path: '/', connections: 16, streams: 10, tls: true },
		contenders: SERVERS,
		bounds: { nginx: 1.8, caddy: 0.5 },
	},
	{
		name: 'tls respond 14 B, HTTP/1.1',
		load: { kind: 'requests', path: '/', tls: true },
		contenders: SERVERS,
	},
	{
		name: 'tls proxied 10 KB, HTTP/1.1',
		load: { kind: 'requests', path: '/10k', tls: true },
		contenders: PROXIES,
		bounds: { nginx: 1.3 },
	},
];

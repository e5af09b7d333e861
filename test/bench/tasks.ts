/** What the servers are compared at, each in its own configuration language. */
import type { Task } from './servers.ts';

const BODY = 'Hello, world!\n';

/** nginx around one server block. */
function nginx(server: string, http: string = ''): string {
	return `daemon off; worker_processes 1; pid nginx.pid;
events { worker_connections 16384; }
http {
	access_log off; keepalive_requests 1000000000; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	${http}
	server { ${server} }
}
`;
}

/** What the backend has beside `/`: bytes by name. */
export const BACKEND_FILES = { '10k': 10_240, '1m': 1_048_576 } as const;

/** The backend that proxies talk to: nginx, on the load generator's core. */
export function backendConfiguration(port: number): string {
	return nginx(
		`listen 127.0.0.1:${port}; sendfile on; root .; default_type text/plain; location = / { return 200 "Hello, world!\\n"; }`,
	);
}

const SVC_OPTIONS = '{\n\tthreads 1\n}\n';
const CADDY_OPTIONS = '{\n\tadmin off\n\tauto_https off\n\tlog {\n\t\toutput discard\n\t}\n}\n';

/** A row that proxies a path of the backend. */
function proxyTask(name: string, path: string): Task {
	return {
		name,
		path,
		configurations: {
			svc: (port, backend) => `${SVC_OPTIONS}http://127.0.0.1:${port} {\n\treverse_proxy 127.0.0.1:${backend}\n}\n`,
			nginx: (port, backend) =>
				nginx(
					`listen 127.0.0.1:${port}; location / { proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $http_host; }`,
					`upstream b { server 127.0.0.1:${backend}; keepalive 128; keepalive_requests 1000000000; }`,
				),
			caddy: (port, backend) => `${CADDY_OPTIONS}http://127.0.0.1:${port} {\n\treverse_proxy 127.0.0.1:${backend}\n}\n`,
			haproxy: (port, backend) => `global
	nbthread 1
defaults
	mode http
	option forwardfor
	timeout client 60s
	timeout server 60s
	timeout connect 5s
frontend f
	bind 127.0.0.1:${port}
	default_backend b
backend b
	http-reuse always
	server s 127.0.0.1:${backend}
`,
		},
	};
}

/** The rows of the bench, in the order printed. */
export const TASKS: readonly Task[] = [
	{
		name: 'respond 14 B',
		path: '/',
		configurations: {
			svc: port => `${SVC_OPTIONS}http://127.0.0.1:${port} {\n\trespond "Hello, world!\n"\n}\n`,
			nginx: port =>
				nginx(`listen 127.0.0.1:${port}; location / { default_type text/plain; return 200 "Hello, world!\\n"; }`),
			caddy: port => `${CADDY_OPTIONS}http://127.0.0.1:${port} {\n\trespond "Hello, world!\n"\n}\n`,
			haproxy: port => `global
	nbthread 1
defaults
	mode http
	timeout client 60s
	timeout server 60s
	timeout connect 5s
frontend f
	bind 127.0.0.1:${port}
	http-request return status 200 content-type text/plain string "Hello, world!\\n"
`,
		},
	},
	proxyTask('proxy 14 B', '/'),
	proxyTask('proxy 10 KB', '/10k'),
	proxyTask('proxy 1 MB', '/1m'),
];

/** Length of the body that `/` answers with. */
export const BODY_LENGTH: number = BODY.length;

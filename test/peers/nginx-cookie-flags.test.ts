/** The attributes of cookies, changed by `cookie` and by nginx's `proxy_cookie_flags`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, serve, temporaryFolder, waitForPort } from '../harness.ts';

const peers = suite('attributes of cookies, beside nginx');

const COOKIES = [
	'session=1; Path=/; Domain=a.example; Max-Age=60',
	'session2=a=b; secure; SameSite=None',
	'other=x; HttpOnly; SameSite=Strict; Secure; Expires=Wed, 21 Oct 2026 07:28:00 GMT',
	'plain=',
	'removed=1; httponly; SECURE; Path=/x',
];

peers('the same attributes are added and removed', async () => {
	const [port, nginxPort, upstreamPort] = (await freePorts(3)) as [number, number, number];
	const folder = temporaryFolder();
	mkdirSync(path.join(folder, 'logs'));
	writeFileSync(
		path.join(folder, 'nginx.conf'),
		`daemon off; worker_processes 1; pid nginx.pid; user root;
events { }
http {
	access_log off;
	client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	server {
		listen 127.0.0.1:${nginxPort};
		proxy_cookie_flags ~^session secure httponly samesite=lax;
		proxy_cookie_flags other nosamesite nohttponly;
		proxy_cookie_flags removed nosecure samesite=strict;
		location / { proxy_pass http://127.0.0.1:${upstreamPort}; }
	}
}
`,
	);
	writeFileSync(
		path.join(folder, 'Configfile'),
		`http://127.0.0.1:${port} {
	cookie session* {
		secure
		http_only
		same_site lax
	}
	cookie other {
		same_site off
		http_only off
	}
	cookie removed {
		secure off
		same_site strict
	}
	reverse_proxy 127.0.0.1:${upstreamPort}
}
`,
	);
	const upstream = createServer((_request, response) => {
		response.setHeader('Set-Cookie', COOKIES);
		response.end('ok');
	});
	upstream.listen(upstreamPort, '127.0.0.1');
	await once(upstream, 'listening');
	const nginx = spawn('nginx', ['-p', folder, '-e', 'error.log', '-c', 'nginx.conf'], { stdio: 'ignore' });
	const whenEnded = once(nginx, 'close');
	const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
	try {
		await waitForPort(nginxPort);
		const request = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`;
		const ours = readCookies(await rawExchange(port, request));
		assert.is(ours.length, COOKIES.length);
		assert.equal(ours, readCookies(await rawExchange(nginxPort, request)));
	} finally {
		await server.stop();
		upstream.close();
		nginx.kill('SIGTERM');
		await whenEnded;
	}
});

/**
 * Returns the name and value of each cookie, followed by its attributes in lower case and sorted, because neither their case nor
 * their order matters.
 */
function readCookies(response: string): readonly (readonly string[])[] {
	return [...response.matchAll(/^set-cookie: (.*)\r$/gim)].map(([, value]) => {
		const [pair, ...attributes] = value!.split(';').map(text => text.trim());
		return [pair!, ...attributes.map(text => text.toLowerCase()).sort()];
	});
}

peers.run();

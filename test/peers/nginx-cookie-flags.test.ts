/** The attributes of cookies, changed by `cookie` and by nginx's `proxy_cookie_flags`. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, rawExchange, serve, temporaryFolder } from '../harness.ts';
import { startNginx } from './nginx-process.ts';

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
	const nginx = await startNginx(
		folder,
		nginxPort,
		`access_log off;
	server {
		listen 127.0.0.1:${nginxPort};
		proxy_cookie_flags ~^session secure httponly samesite=lax;
		proxy_cookie_flags other nosamesite nohttponly;
		proxy_cookie_flags removed nosecure samesite=strict;
		location / { proxy_pass http://127.0.0.1:${upstreamPort}; }
	}`,
	);
	const server = await serve(['-c', 'Configfile'], port, { cwd: folder });
	try {
		const request = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`;
		const ours = readCookies(await rawExchange(port, request));
		assert.is(ours.length, COOKIES.length);
		assert.equal(ours, readCookies(await rawExchange(nginxPort, request)));
	} finally {
		await server.stop();
		upstream.close();
		await nginx.stop();
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

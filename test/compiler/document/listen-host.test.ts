/** Hosts to listen on: the accepted forms and the invalid ones. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isListenHost, parseListenHost } from '../../../compiler/document/listen-host.ts';

const hosts = suite('hosts to listen on');

hosts('addresses, names, sockets and descriptors are distinguished', () => {
	const cases: [text: string, found: string][] = [
		['127.0.0.1', 'tcp 127.0.0.1'],
		['[::1]', 'tcp ::1'],
		['::1', 'tcp ::1'],
		['localhost', 'tcp localhost'],
		['', 'tcp '],
		['tcp/10.0.0.1', 'tcp 10.0.0.1'],
		['tcp4/0.0.0.0', 'tcp 0.0.0.0'],
		['tcp6/[::]', 'tcp :: only6'],
		['tcp6/[::1]', 'tcp ::1'],
		['unix//run/a.sock', 'unix /run/a.sock'],
		['unix//run/a.sock|0660', 'unix /run/a.sock 660'],
		['unix//run/a.sock|222', 'unix /run/a.sock 222'],
		['unix/{env.RUNTIME_DIRECTORY}/a.sock', 'unix {env.RUNTIME_DIRECTORY}/a.sock'],
		['fd/3', 'fd 3'],
		['fd/web-tls.1', 'fd web-tls.1'],
		['fd/{env.X}', 'fd {env.X}'],
		['a b', 'bind/not-a-host'],
		['-', 'bind/not-a-host'],
		['tcp4/[::1]', 'bind/not-a-host'],
		['tcp6/10.0.0.1', 'bind/not-a-host'],
		['tcp4/localhost', 'bind/not-a-host'],
		['unix/run/a.sock', 'bind/not-a-host'],
		['unix//', 'bind/not-a-host'],
		['unix//run/', 'bind/not-a-host'],
		['unix//run/{http.request.host}', 'bind/not-a-host'],
		['unix//run/{env.X', 'bind/not-a-host'],
		['unix//run/a.sock|0444', 'bind/mode'],
		['unix//run/a.sock|9', 'bind/mode'],
		['unix//run/a.sock|', 'bind/mode'],
		['fd/', 'bind/not-a-host'],
		['fd/-1', 'bind/not-a-host'],
		['fd/{http.request.port}', 'bind/not-a-host'],
		['fdgram/4', 'bind/unavailable'],
		['udp/127.0.0.1', 'bind/unavailable'],
		['http/x', 'bind/not-a-host'],
	];
	for (const [text, expected] of cases) {
		const host = parseListenHost(text);
		let found: string;
		if (!isListenHost(host)) found = host.code;
		else if (host.network === 'tcp') found = `tcp ${host.host}${host.ipv6Only ? ' only6' : ''}`;
		else if (host.network === 'fd') found = `fd ${host.descriptor}`;
		else found = `unix ${host.path}${host.mode === undefined ? '' : ` ${host.mode.toString(8)}`}`;
		assert.is(found, expected, text);
	}
});

hosts.run();

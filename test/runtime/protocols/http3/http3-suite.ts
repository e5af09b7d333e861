/** Suites whose cases need HTTP/3, which needs `direct` I/O. */
import { type Context, suite, type uvu } from 'uvu';
import * as assert from 'uvu/assert';
import { isDirectIo } from '../../../../runtime/sockets/io-mode.ts';
import { quicSupport } from '../../../../runtime/sockets/quic/quic-library.ts';

/** Makes a suite. With `node` I/O it has one case instead of its own: there is no HTTP/3, and a reason. */
export function http3Suite(name: string): uvu.Test<Context> {
	if (isDirectIo()) return suite(name);
	const instead = suite(name);
	instead('is unavailable with node I/O', () => {
		assert.match(quicSupport().missing ?? '', /`direct` I\/O/);
	});
	const ignored = () => Object.assign(() => {}, { each() {} });
	const hooks = { before: ignored(), after: ignored(), only: ignored(), skip: ignored() };
	return Object.assign(() => {}, { ...hooks, run: () => instead.run() }) as unknown as uvu.Test<Context>;
}

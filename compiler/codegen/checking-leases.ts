/** Leases for a trial build: they connect to nothing, but check the files they are given. */

import type { LeaseKinds, Leases } from '../exchange/leases.ts';
import { readTlsMaterial } from '../modules/directives/reverse-proxy/transports/tls-material.ts';
import type { Reader } from '../source/reader.ts';
import { fakeLeases } from './context/fake-leases.ts';

/**
 * Returns fakes that read through the compiler's reader. They throw MaterialError for unusable certificates. `live`: values
 * from the environment are known and are checked.
 */
export function checkingLeases(reader: Reader, live: boolean): Leases {
	return {
		lease(kind, settings) {
			if (live && kind === 'password_verifier') {
				return { ...fakeLeases.lease('password_verifier', {}), live } as LeaseKinds[typeof kind]['lease'];
			}
			if (kind === 'upstreams') checkPool(settings as LeaseKinds['upstreams']['settings'], reader);
			return fakeLeases.lease(kind, settings);
		},
	};
}

function checkPool({ transport }: LeaseKinds['upstreams']['settings'], reader: Reader): void {
	if (transport?.type === 'http' && transport.tls) readTlsMaterial(transport.tls, path => reader.readBytes(path));
}

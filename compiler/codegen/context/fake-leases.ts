/** Fakes of all leased resources, such as upstream pools. With them, the compiler checks that the handler graph can be built. */

import type { LeaseKinds, Leases } from '../../exchange/leases.ts';
import { UpstreamError } from '../../exchange/leases.ts';
import { EmptyCache } from './empty-cache.ts';

/**
 * Thrown instead of reading a file. All calls throw the same object, because lint rules run thousands of requests, and recording
 * a stack trace for each error would take long.
 */
export const FILES_NOT_READ = new Error('There are no files while a configuration is checked.');

type FakeLeases = { readonly [K in keyof LeaseKinds]: (settings: LeaseKinds[K]['settings']) => LeaseKinds[K]['lease'] };

const FAKE_LEASES_BY_KIND: FakeLeases = {
	upstreams: settings => ({
		settings,
		select: () => undefined,
		countShed: () => false,
		mayRetry: () => false,
		pause: () => Promise.resolve(false),
		elapsed: () => 0,
		registerStream: () => () => {},
		send: () => Promise.reject(new UpstreamError('connect', 'There is no network while a configuration is checked.')),
	}),
	files: () => ({
		open: () => Promise.reject(FILES_NOT_READ),
		kind: () => undefined,
		stat: () => undefined,
		list: () => [],
		entries: () => Promise.reject(FILES_NOT_READ),
		readStart: () => undefined,
	}),
	access_log: () => ({ record: () => {} }),
	password_verifier: () => ({ isLive: false, verify: () => false }),
	account_file: () => ({ accounts: () => new Map() }),
	// The IDs are always the same, so that the results of dry runs can be compared.
	tracer: () => ({
		newTraceId: () => '00000000000000000000000000000001',
		newSpanId: () => '0000000000000001',
		isSampled: (_traceId, parentSampled) => parentSampled ?? true,
		record: () => {},
	}),
	cache: () => new EmptyCache(),
	metrics: () => ({ render: () => Promise.resolve('') }),
	health: () => ({ notReadyReason: () => Promise.resolve(undefined) }),
	acme_authority: () => ({ answer: () => Promise.resolve({ status: 503, headers: [], body: '' }) }),
	compressor: () => ({ encode: body => ({ body, encoded: false }) }),
	rate_limiter: () => ({
		take: () => 0,
		takeAfterReport: () => Promise.resolve(0),
		charge: () => {},
		delay: () => Promise.resolve(true),
		countOutcome: () => {},
	}),
	concurrency_limiter: () => ({ enter: () => ({ leave: () => {} }), countOutcome: () => {} }),
	event_counter: () => ({ add: () => {} }),
	mirror_gate: () => ({
		counts: { countSent: () => {}, countDropped: () => {} },
		enter: () => true,
		leave: () => {},
		reserve: () => true,
		release: () => {},
	}),
};

/** Leases of fake resources, for building a site without a server. */
export const fakeLeases: Leases = {
	lease: (kind, settings) => FAKE_LEASES_BY_KIND[kind](settings),
};

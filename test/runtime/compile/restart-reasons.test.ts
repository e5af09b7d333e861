/** Changes that a running process cannot apply without a restart. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Document, Settings } from '../../../compiler/document/document.ts';
import { restartReasons } from '../../../runtime/compile/restart-reasons.ts';
import { createDocumentImage, type DocumentImage } from '../../../runtime/worker/document-image.ts';

type Listener = readonly [key: string, scheme: 'http' | 'https'];

function imageOf(settings: Settings, listeners: readonly Listener[] = []) {
	const document: Document = { settings };
	return createDocumentImage(document, {
		document,
		listeners: listeners.map(([key, scheme]) => ({ key, host: '', port: Number(key), scheme, sites: [] })),
	});
}

function reasons(
	before: DocumentImage,
	after: DocumentImage,
	unconfigured = false,
	served: readonly string[] = before.certificates?.names ?? [],
): string[] {
	const facts = { unconfigured, servedNames: new Set(served) };
	return restartReasons(before, after, facts).map(({ code, subject }) => `${code} ${subject}`);
}

const restart = suite('restart reasons');

restart('added and removed listeners, and listeners that change their scheme, need a restart', () => {
	const before = imageOf({}, [['80', 'http']]);
	assert.equal(reasons(before, imageOf({}, [['80', 'http']])), []);
	assert.equal(
		reasons(
			before,
			imageOf({}, [
				['80', 'http'],
				['81', 'http'],
			]),
		),
		['listener_added :81'],
	);
	assert.equal(reasons(before, imageOf({})), ['listener_removed :80']);
	assert.equal(reasons(before, imageOf({}, [['80', 'https']])), ['listener_added :80', 'listener_removed :80']);
});

restart('a process without a configuration accepts plaintext listeners once', () => {
	assert.equal(reasons(imageOf({}), imageOf({}, [['80', 'http']]), true), []);
	assert.equal(reasons(imageOf({}), imageOf({}, [['443', 'https']]), true), ['listener_added :443']);
	assert.equal(reasons(imageOf({}), imageOf({}, [['80', 'http']]), false), ['listener_added :80']);
	const listening = imageOf({}, [['80', 'http']]);
	assert.equal(
		reasons(
			listening,
			imageOf({}, [
				['80', 'http'],
				['81', 'http'],
			]),
			true,
		),
		['listener_added :81'],
	);
});

restart('settings fixed at start need a restart, and others do not', () => {
	const before: Settings = { metrics: {}, admin: { token: 'a' } };
	assert.equal(reasons(imageOf(before), imageOf({ ...before, metrics: { per_host: true } })), [
		'setting_changed metrics',
	]);
	assert.equal(reasons(imageOf(before), imageOf({ ...before, trusted_proxies: ['10.0.0.0/8'] })), [
		'setting_changed trusted_proxies',
	]);
	const free: Settings = {
		...before,
		grace_period: 1,
		threads: 3,
		debug: true,
		logs: { default: { level: 'DEBUG' } },
		admin: { token: 'b' },
	};
	assert.equal(reasons(imageOf(before), imageOf(free)), []);
});

restart('moving the Admin API needs a restart', () => {
	const at = (listen?: string): Settings => ({ admin: listen === undefined ? {} : { listen } });
	assert.equal(reasons(imageOf(at()), imageOf(at('127.0.0.1:2019'))), []);
	assert.equal(reasons(imageOf(at()), imageOf(at('127.0.0.1:1'))), ['setting_changed admin.listen']);
	assert.equal(reasons(imageOf({}), imageOf(at())), ['setting_changed admin.listen']);
	assert.equal(reasons(imageOf(at()), imageOf({})), ['setting_changed admin.listen']);
	assert.equal(reasons(imageOf({}), imageOf(at()), true), []);
	assert.equal(reasons(imageOf(at()), imageOf({}), true), []);
	assert.equal(reasons(imageOf({}), imageOf(at('127.0.0.1:1')), true), ['setting_changed admin.listen']);
});

restart('an added TLS host name, and client certificates with session resumption, need a restart', () => {
	const secure = (names: readonly string[], mutual: readonly string[] = []) => ({
		...imageOf({}, [['443', 'https']]),
		certificates: {
			managed: { policies: [], authorities: [], http_port: 80, https_port: 443 },
			loaded: [],
			names,
			mutual,
			client_auth: [],
		},
	});
	assert.equal(reasons(secure(['a']), secure(['a'])), []);
	assert.equal(reasons(secure(['a', 'b']), secure(['a'])), []);
	assert.equal(reasons(secure(['a']), secure(['a', 'b'])), ['tls_hostname_added b']);
	assert.equal(
		reasons(secure(['a']), secure(['a', 'b', 'c']), false, ['a', 'b']),
		['tls_hostname_added c'],
		'b returns',
	);
	const onDemand = (names: readonly string[], subjects: readonly string[]): DocumentImage => {
		const { certificates, ...rest } = secure(names);
		const policies = [{ subjects, issuers: [], on_demand: true }];
		return { ...rest, certificates: { ...certificates, managed: { ...certificates.managed, policies } } };
	};
	assert.equal(reasons(onDemand([], []), onDemand(['new.test'], [])), []);
	assert.equal(reasons(onDemand(['a'], ['a']), onDemand(['a', 'b'], ['a'])), ['tls_hostname_added b']);
	const wild = ['*.example.com'];
	assert.equal(reasons(secure(wild), secure([...wild, 'a.example.com'])), []);
	for (const other of ['example.com', 'a.b.example.com', 'a.example.org']) {
		assert.equal(reasons(secure(wild), secure([...wild, other])), [`tls_hostname_added ${other}`]);
	}
	assert.equal(reasons(secure(['a']), secure(['a'], [':443'])), ['mutual_tls_with_resumption :443']);
	assert.equal(reasons(secure(['a'], [':443']), secure(['a'], [':443'])), []);
	assert.equal(reasons(secure(['a'], [':443']), secure(['a'])), []);
});

restart.run();

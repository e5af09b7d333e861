/** Plans: listeners, the order of their sites, and invalid documents. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { planDocument } from '../../../compiler/codegen/plan/plan-document.ts';
import type { Diagnostic } from '../../../compiler/diagnostics/diagnostic.ts';
import type { Settings, Site } from '../../../compiler/document/document.ts';

function planSites(sites: readonly Partial<Site>[], settings: Settings = {}) {
	const diagnostics: Diagnostic[] = [];
	const document = { settings, sites: sites.map(site => ({ addresses: [], pipeline: [], ...site })) };
	const { listeners } = planDocument(document, diagnostic => diagnostics.push(diagnostic));
	return { listeners, codes: diagnostics.map(({ code }) => code), pointers: diagnostics.map(({ pointer }) => pointer) };
}

const plans = suite('plans');

plans('a listener has a host and a port, and lists the sites it serves', () => {
	const { listeners } = planSites([
		{ addresses: [':8080', 'http://a'] },
		{ addresses: ['http://b:8080'], bind: ['127.0.0.1', '::1'] },
	]);
	assert.equal(
		listeners.map(({ key, host, port }) => [key, host, port]),
		[
			['tcp/127.0.0.1:8080', '127.0.0.1', 8080],
			['tcp/:80', '', 80],
			['tcp/:8080', '', 8080],
			['tcp/[::1]:8080', '::1', 8080],
		],
	);
});

plans('the most specific host comes first and catch-alls last; equally specific hosts keep the file order', () => {
	const { listeners } = planSites(
		[
			{ addresses: ['http://a'] },
			{ addresses: ['http://*.example.com'] },
			{ addresses: ['http://abc'] },
			{ addresses: ['http://abcdef', 'http://x'] },
			{ addresses: ['http://ab', ':8080'] },
			{ addresses: ['http://1.example.com'] },
			{ addresses: ['http://abc/longer'] },
		],
		{ http_port: 8080 },
	);
	assert.equal(
		listeners[0]!.sites.map(({ site }) => site),
		[5, 1, 3, 6, 2, 0, 4],
	);
	assert.equal(listeners[0]!.sites[6], { site: 4, hosts: [], paths: [] });
	assert.equal(listeners[0]!.sites[3], { site: 6, hosts: ['abc'], paths: ['/longer'] });
});

plans('a duplicate address is ambiguous on one listener, but not on two', () => {
	assert.equal(planSites([{ addresses: ['http://a'] }, { addresses: ['http://A:80'] }]), {
		listeners: planSites([{ addresses: ['http://a'] }]).listeners,
		codes: ['site/ambiguous'],
		pointers: ['/sites/1/addresses/0'],
	});
	assert.equal(planSites([{ addresses: ['http://a'] }, { addresses: ['http://a:81'] }]).codes, []);
	const bound = planSites([
		{ addresses: [':80'], bind: ['127.0.0.1'] },
		{ addresses: [':80'], bind: ['127.0.0.2'] },
	]);
	assert.equal(bound.codes, []);
});

plans('sites with host names use TLS, and a plain HTTP listener redirects to them', () => {
	const { codes, listeners } = planSites([
		{ addresses: ['a.com', 'b.com'] },
		{ addresses: ['localhost:8443'] },
		{ addresses: ['http://c'] },
	]);
	assert.equal(codes, []);
	assert.equal(
		listeners.map(({ key, scheme }) => `${scheme} ${key}`),
		['https tcp/:443', 'http tcp/:80', 'https tcp/:8443'],
	);
	assert.equal(listeners[1]!.sites, [
		{ site: 2, hosts: ['c'], paths: [] },
		{ site: -1, hosts: ['localhost'], paths: [], redirect: 8443 },
		{ site: -1, hosts: ['a.com', 'b.com'], paths: [], redirect: 0 },
		{ site: -1, hosts: [], paths: [], redirect: 0 },
	]);
});

plans('a listener serves either HTTP or HTTPS', () => {
	const { codes, pointers } = planSites([
		{ addresses: ['http://a:9000', 'https://b:9000'] },
		{ addresses: [':8080', 'localhost:8080'] },
	]);
	assert.equal(codes, ['address/http-and-https', 'address/http-and-https']);
	assert.equal(pointers, ['/sites/0/addresses/1', '/sites/1/addresses/1']);
});

plans('invalid listen addresses are rejected', () => {
	assert.equal(
		planSites([
			{ addresses: ['http://{env.HOST}'] },
			{ addresses: [':80'], bind: ['unix//run/a.sock|0660'] },
			{ addresses: ['http://b'], bind: ['unix//run/a.sock'] },
		]).codes,
		['address/placeholder', 'bind/mode'],
	);
});

plans('Unix sockets and file descriptors have no port, and no redirects point to their sites', () => {
	const { codes, listeners } = planSites([
		{ addresses: ['http://a:9000', 'http://b'], bind: ['unix//run/a.sock|0660', 'fd/{env.SOCKET}'] },
		{ addresses: ['c'], bind: ['fd/4', 'unix//run/tls.sock'] },
		{ addresses: ['http://d:81'], bind: ['tcp4/0.0.0.0', 'tcp6/[::]', 'tcp6/[::1]'] },
	]);
	assert.equal(codes, []);
	assert.equal(
		listeners.map(({ key, host, port, scheme, mode, only6 }) => [key, host, port, scheme, mode ?? only6]),
		[
			['fd/4', 'fd/4', 0, 'https', undefined],
			['fd/{env.SOCKET}', 'fd/{env.SOCKET}', 0, 'http', undefined],
			['tcp/0.0.0.0:81', '0.0.0.0', 81, 'http', undefined],
			['tcp/[::1]:81', '::1', 81, 'http', undefined],
			['tcp6/[::]:81', '::', 81, 'http', true],
			['unix//run/a.sock', 'unix//run/a.sock', 0, 'http', 0o660],
			['unix//run/tls.sock', 'unix//run/tls.sock', 0, 'https', undefined],
		],
	);
});

plans('`default_bind` applies to sites without `bind`', () => {
	const { listeners } = planSites([{ addresses: [':8080'] }, { addresses: [':8081'], bind: ['::1'] }], {
		default_bind: ['127.0.0.1'],
	});
	assert.equal(
		listeners.map(({ key }) => key),
		['tcp/127.0.0.1:8080', 'tcp/[::1]:8081'],
	);
});

plans.run();

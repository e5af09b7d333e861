/** The binary loads a module of Node when one of its exports is first used. The module has the same exports as in Node. */
import http from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deferModules } from '../../../cli/packaging/defer-modules.js';

const deferredModules = suite('deferred modules');

function requireFrom(modules: { readonly [name: string]: object }) {
	const loaded: string[] = [];
	const require = deferModules(
		name => {
			loaded.push(name);
			return modules[name];
		},
		{ http: Object.getOwnPropertyNames(http) },
	);
	return { loaded, require };
}

deferredModules('a module is loaded at the first use of an export, once', () => {
	const { loaded, require } = requireFrom({ 'node:http': http });
	const deferred = require('node:http');
	assert.is(require('node:http'), deferred);
	assert.equal(Object.keys(deferred).sort(), Object.getOwnPropertyNames(http).sort());
	assert.equal(loaded, []);
	assert.is(deferred.createServer, http.createServer);
	assert.is(deferred.Agent, http.Agent);
	assert.equal(loaded, ['node:http']);
});

deferredModules('exports stay as Node defines them', () => {
	const { require } = requireFrom({ 'node:http': http });
	const deferred = require('node:http');
	assert.is(deferred.STATUS_CODES, http.STATUS_CODES);
	const names = Object.getOwnPropertyNames(http);
	assert.equal(
		names.filter(
			name => Object.getOwnPropertyDescriptor(deferred, name)?.get !== Object.getOwnPropertyDescriptor(http, name)?.get,
		),
		[],
	);
	const agent = new http.Agent();
	const { globalAgent } = http;
	deferred.globalAgent = agent;
	try {
		assert.is(http.globalAgent, agent);
	} finally {
		http.globalAgent = globalAgent;
	}
});

deferredModules('other modules are loaded at once', () => {
	const { loaded, require } = requireFrom({ 'node:path': { sep: '/' } });
	assert.is(require('node:path').sep, '/');
	assert.equal(loaded, ['node:path']);
});

deferredModules.run();

/** The registry of global options, one line each. */
import { admin } from './admin.ts';
import { cacheOption } from './cache.ts';
import { defaultBind } from './default-bind.ts';
import { log } from './log.ts';
import { metrics } from './metrics.ts';
import type { GlobalOption } from './option.ts';
import { persistConfig } from './persist-config.ts';
import { pki } from './pki.ts';
import { httpPort, httpsPort } from './ports.ts';
import { debug, gracePeriod, io, shutdownDelay, threads } from './process.ts';
import { clientIpSettings } from './servers/client-ip.ts';
import { trustedProxiesSetting } from './servers/trusted-proxies.ts';
import { servers } from './servers.ts';
import { storage, storageCheck, storageCleanInterval } from './storage.ts';
import { autoHttps, defaultSni, fallbackSni, localCerts, skipInstallTrust } from './tls/automatic-https.ts';
import {
	acmeCa,
	acmeCaRoot,
	acmeDns,
	acmeEab,
	certIssuer,
	certLifetime,
	dns,
	email,
	keyType,
	preferredChains,
	renewalWindowRatio,
	renewInterval,
	tlsResolvers,
} from './tls/issuance.ts';
import { ocspInterval, ocspStapling, onDemandTls } from './tls/ocsp.ts';

/** All global options, in the order of `list-modules` and the manual. */
export const options: readonly GlobalOption[] = [
	acmeCa,
	acmeCaRoot,
	acmeDns,
	acmeEab,
	autoHttps,
	certIssuer,
	certLifetime,
	defaultSni,
	dns,
	email,
	fallbackSni,
	keyType,
	localCerts,
	ocspInterval,
	ocspStapling,
	onDemandTls,
	preferredChains,
	renewInterval,
	renewalWindowRatio,
	skipInstallTrust,
	tlsResolvers,
	admin,
	cacheOption,
	debug,
	defaultBind,
	gracePeriod,
	httpPort,
	httpsPort,
	io,
	log,
	metrics,
	persistConfig,
	pki,
	servers,
	shutdownDelay,
	storage,
	storageCheck,
	storageCleanInterval,
	threads,
	trustedProxiesSetting,
	...clientIpSettings,
];

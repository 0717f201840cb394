/** What the generated charges are for. All merchants are invented. */

export interface CurrencyProfile {
  readonly currency: string;
  /** Digits after the decimal point: yen have none. @see ISO 4217 */
  readonly minorDigits: number;
  /** About what costs 1 in euros costs in this currency, so that amounts look plausible. */
  readonly perEuro: number;
  /** How many of 20 accounts are held in it. */
  readonly weight: number;
  readonly merchants: readonly string[];
}

export const CURRENCY_PROFILES: readonly CurrencyProfile[] = [
  {
    currency: 'EUR',
    minorDigits: 2,
    perEuro: 1,
    weight: 7,
    merchants: [
      'Kaffeerösterei Morgentau',
      'Café du Vieux Lavoir',
      'Librería Tres Olivos',
      'Pizzeria Fiordaliso 🍕',
      'Fahrradwerkstatt Speichenglück',
      'Ateljee Lumikello',
      'Quiosque Maré Alta',
    ],
  },
  {
    currency: 'USD',
    minorDigits: 2,
    perEuro: 1.1,
    weight: 5,
    merchants: [
      'Cedar Hollow Books',
      'Blue Lantern Coffee',
      'Rivergate Hardware',
      'Sunfield Yoga Studio',
      'Tall Pine Outfitters',
      "Nell's Corner Bakery 🥐",
    ],
  },
  {
    currency: 'GBP',
    minorDigits: 2,
    perEuro: 0.85,
    weight: 3,
    merchants: ['Foxglove Tea Rooms', 'Harbourside Cycles', 'The Crooked Kettle', 'Marsh Lane Garden Centre'],
  },
  {
    currency: 'JPY',
    minorDigits: 0,
    perEuro: 160,
    weight: 2,
    merchants: ['パン工房みなと', '文具のつばめ屋', '喫茶ひだまり', '自転車の風車堂'],
  },
  {
    currency: 'PLN',
    minorDigits: 2,
    perEuro: 4.3,
    weight: 1,
    merchants: ['Księgarnia Pod Wieżą', 'Piekarnia Złoty Kłos', 'Kwiaciarnia Żonkil'],
  },
  {
    currency: 'BRL',
    minorDigits: 2,
    perEuro: 6,
    weight: 1,
    merchants: ['Padaria Três Irmãs', 'Livraria Maçã Verde', 'Açaí da Esquina'],
  },
  {
    currency: 'SEK',
    minorDigits: 2,
    perEuro: 11,
    weight: 1,
    merchants: ['Bageri Blåklinten', 'Cykelhuset Ön', 'Bokhandeln Räven'],
  },
];

/** Endings of a description. `#` becomes an order number. */
export const PURPOSES: readonly string[] = [
  'order #',
  'order #',
  'order #',
  'invoice #',
  'monthly plan',
  'gift card',
  'subscription renewal',
  'table booking #',
  'delivery #',
];

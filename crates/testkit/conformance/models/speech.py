"""Sound for the voice activity models: silence, then vowels, then noise, in the chunks that the models take."""
import numpy as np

# Two formants of each vowel, Hz.
VOWELS = [(730, 1090), (270, 2290), (300, 870), (530, 1840)]


def sound(rate, seconds, voice):
    """Mono samples of -1 to 1 whose pitch is about `voice` Hz; the middle half is speech-like."""
    random = np.random.default_rng(int(voice))
    time = np.arange(int(rate * seconds)) / rate
    pitch = voice * (1 + 0.05 * np.sin(2 * np.pi * 3 * time))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    samples = np.zeros_like(time)
    for harmonic in range(1, int(0.45 * rate / voice)):
        vowel = (time * 5).astype(int) % len(VOWELS)
        formants = np.array(VOWELS)[vowel]
        loudness = sum(np.exp(-(((harmonic * voice - formants[:, k]) / 120) ** 2)) for k in (0, 1)) + 0.02
        samples += loudness * np.sin(harmonic * phase)
    speaking = (time > seconds / 4) & (time < 3 * seconds / 4)
    samples = 0.2 * samples * speaking * (1 + 0.5 * np.sin(2 * np.pi * 4 * time))
    return (samples + 0.002 * random.standard_normal(len(time))).astype(np.float32)


def chunks(rate, samples, context, count, batch):
    """`count` inputs of [batch, context + samples] that follow each other, each led by the end of the one before."""
    voices = np.stack([sound(rate, (count * samples + context) / rate, 110 + 30 * row) for row in range(batch)])
    return [voices[:, start * samples : start * samples + context + samples] for start in range(count)]
